// Without this script, each bucket of a chart has a title with its figures, and people type a range into the fields.

for (const chart of document.querySelectorAll("svg[data-zoom]")) {
  const region = chart.parentElement;
  const hits = [...chart.querySelectorAll(".hit")];
  const card = chart.closest(".card");
  const readout = card.querySelector(".readout");
  const hint = readout.innerHTML || "Drag to zoom · ←/→ to read";
  readout.innerHTML = hint;
  const keys = [...card.querySelectorAll("[data-part]")];
  let from = -1;
  let to = -1;
  let isDragged = false;

  const choose = (start, end) => {
    [from, to] = [start, end];
    const [first, last] = [Math.min(from, to), Math.max(from, to)];
    for (const [n, hit] of hits.entries()) hit.classList.toggle("chosen", first <= n && n <= last);
    const lines = last < 0 ? [] : hits[to].textContent.trim().split("\n");
    // The key of the chart has the value of each part of the pointed day.
    for (const key of keys) {
      const own = lines.find((line) => line.startsWith(`${key.dataset.part}: `));
      key.querySelector("b")?.remove();
      if (own)
        key.append(
          Object.assign(document.createElement("b"), {
            textContent: ` ${own.slice(key.dataset.part.length + 2)}`,
          }),
        );
    }
    if (last < 0) {
      readout.innerHTML = hint;
      return;
    }
    const others = lines.filter(
      (line, n) => n === 0 || !keys.some((key) => line.startsWith(`${key.dataset.part}: `)),
    );
    readout.textContent =
      first === last
        ? others.join(" · ")
        : `${hits[first].dataset.at} to ${hits[last].dataset.at}: ${isDragged ? "release" : "Enter"} shows this range`;
  };
  const show = () => {
    const [first, last] = [Math.min(from, to), Math.max(from, to)];
    if (first < 0) return;
    const address = new URL(chart.dataset.zoom, location.href);
    const { at } = hits[last].dataset;
    const next = hits.slice(last).find((hit) => hit.dataset.at !== at);
    address.searchParams.set("from", hits[first].dataset.at);
    address.searchParams.set("to", next?.dataset.at ?? chart.dataset.end);
    location.assign(address);
  };

  chart.addEventListener("pointerdown", (event) => {
    const n = hits.indexOf(event.target);
    if (n < 0 || event.button !== 0) return;
    event.preventDefault();
    isDragged = true;
    choose(n, n);
  });
  chart.addEventListener("pointermove", (event) => {
    const n = hits.indexOf(event.target);
    if (n >= 0 && n !== to) choose(isDragged ? from : n, n);
  });
  chart.addEventListener("pointerup", () => {
    if (isDragged) show();
  });
  for (const end of ["pointercancel", "pointerleave"])
    chart.addEventListener(end, () => {
      isDragged = false;
      choose(-1, -1);
    });

  region.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
    if (event.key === "Escape") choose(-1, -1);
    if (event.key === "Enter") show();
    if (step === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    const from0 = to < 0 ? (step > 0 ? -1 : hits.length) : to;
    const n = Math.max(0, Math.min(hits.length - 1, from0 + step));
    choose(event.shiftKey && from >= 0 ? from : n, n);
    hits[n].scrollIntoView({ block: "nearest", inline: "nearest" });
  });
}
