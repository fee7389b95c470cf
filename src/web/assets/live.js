// Without this script, pages do not update themselves, and the header has a button.

document.documentElement.classList.add("scripted");
for (const form of document.querySelectorAll("form.place"))
  form.addEventListener("change", () => form.requestSubmit());

for (const button of document.querySelectorAll("[data-print]"))
  button.addEventListener("click", () => print());

/** Shows how old the figures are, and marks old ones. */
const asOf = document.querySelector("[data-as-of]");
let shownAt = performance.now();
const STALE_MS = 60_000;
const units = [
  [3_600_000, "h"],
  [60_000, "min"],
  [1_000, "s"],
];

function tellAge() {
  if (asOf === null) return;
  const age = performance.now() - shownAt;
  const [length, unit] = units.find(([ms]) => age >= ms) ?? [1_000, "s"];
  const note = asOf.querySelector(".age") ?? asOf.appendChild(document.createElement("span"));
  note.className = "age";
  note.textContent = age < 5_000 ? "" : `, ${Math.floor(age / length)} ${unit} ago`;
  asOf.classList.toggle("stale", age >= STALE_MS);
}
setInterval(tellAge, 5_000);

function showLastDays() {
  for (const chart of document.querySelectorAll(".scroll > .chart"))
    chart.parentElement.scrollLeft = chart.clientWidth;
}
showLastDays();

/** Updates the parts of the page that change, while the page is visible. */
const followed = [...document.querySelectorAll("[data-live]")].map((element) => ({ element, stream: null }));

function follow(part) {
  if (part.stream !== null || part.element.querySelector("[data-live-ended]") !== null) return;
  const stream = new EventSource(part.element.dataset.live);
  part.stream = stream;
  part.element.classList.add("followed");
  stream.addEventListener("fragment", (event) => {
    replaceContent(part.element, JSON.parse(event.data));
    noteAsNow(event);
    if (part.element.querySelector("[data-live-ended]") !== null) leave(part);
  });
  stream.addEventListener("same", noteAsNow);
}

function noteAsNow({ lastEventId }) {
  const at = Number(lastEventId);
  const time = asOf?.querySelector("time");
  if (time) {
    time.dateTime = new Date(at).toISOString();
    time.textContent = time.dateTime.slice(0, 19).replace("T", " ");
  }
  shownAt = performance.now();
  tellAge();
}

/** Replaces content that differs. The focus stays on its element, if the new content has that element. */
function replaceContent(element, content) {
  const template = document.createElement("template");
  template.innerHTML = content;
  for (const { id, open } of element.querySelectorAll("details[id]"))
    template.content.getElementById(id)?.toggleAttribute("open", open);
  if (template.innerHTML === element.innerHTML) return;
  const focused = element.contains(document.activeElement) ? markOf(document.activeElement) : undefined;
  element.replaceChildren(template.content);
  showLastDays();
  if (focused === undefined) return;
  [...element.querySelectorAll("a, button, [tabindex]")].find((one) => markOf(one) === focused)?.focus();
}

/** Attributes that identify a link, a button or a region in the new content. */
function markOf(element) {
  return ["id", "href", "aria-label"].map((name) => element.getAttribute(name) ?? "").join(" ");
}

function leave(part) {
  part.stream?.close();
  part.stream = null;
}

function lookOrLeave() {
  for (const part of followed) (document.hidden ? leave : follow)(part);
}
document.addEventListener("visibilitychange", lookOrLeave);
lookOrLeave();
