// Without this script, cells are links to pages.

const places = [...document.querySelectorAll("[data-grid], .months")];

// The Tab key stops once in a year of days: at the last day, or at the day that the arrow keys chose.
const calendar = document.querySelector(".months");
if (calendar !== null) {
  const STEPS = { ArrowUp: -1, ArrowDown: 1, ArrowLeft: -7, ArrowRight: 7 };
  const days = new Map([...calendar.querySelectorAll("td a")].map((day) => [day.title.slice(0, 10), day]));
  let stop = days.get([...days.keys()].sort().at(-1));
  for (const day of days.values()) day.tabIndex = day === stop ? 0 : -1;
  calendar.addEventListener("focusin", ({ target }) => {
    if (days.get(target.title?.slice(0, 10)) !== target) return;
    stop.tabIndex = -1;
    stop = target;
    stop.tabIndex = 0;
  });
  calendar.addEventListener("keydown", (event) => {
    const step = STEPS[event.key];
    const at = Date.parse(event.target.title?.slice(0, 10));
    if (Number.isNaN(at) || step === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    days.get(new Date(at + step * 86_400_000).toISOString().slice(0, 10))?.focus();
  });
}

/** Shows the page of a cell's link next to the table. If that fails, the browser follows the link. */
const panel = document.createElement("aside");
panel.className = "panel";
panel.tabIndex = -1;
panel.setAttribute("aria-labelledby", "panel-title");
panel.innerHTML =
  '<div class="panel-head"><h2 id="panel-title"></h2><a>Open as a page</a><button class="plain">Close</button></div><div></div>';
panel.querySelector("button").addEventListener("click", close);
let opener;
let wanted;

document.addEventListener("click", async (event) => {
  const link = event.target.closest("a[href^='/cell?']");
  const isOther = event.button !== 0 || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey;
  if (isOther || link === null || ![...places, panel].some((one) => one.contains(link))) return;
  event.preventDefault();
  wanted = link;
  const content = await contentOf(link.href);
  if (wanted !== link) return;
  if (content === null) location.href = link.href;
  else show(content, link);
});

async function contentOf(address) {
  try {
    const response = await fetch(address, { signal: AbortSignal.timeout(10_000) });
    // An ended session redirects to the login.
    if (!response.ok || response.redirected) return null;
    return new DOMParser().parseFromString(await response.text(), "text/html").querySelector("#content");
  } catch {
    return null;
  }
}

function show(content, link) {
  const title = content.querySelector("h1");
  title.remove();
  // This page may have the same ids.
  for (const one of content.querySelectorAll("[id]")) one.removeAttribute("id");
  panel.querySelector("h2").textContent = title.textContent;
  panel.querySelector("a").href = link.href;
  panel.lastChild.replaceChildren(...content.childNodes);
  opener?.removeAttribute("aria-current");
  if (!panel.contains(link)) opener = link;
  opener.setAttribute("aria-current", "true");
  document.body.append(panel);
  panel.scrollTop = 0;
  opener.scrollIntoView({ block: "nearest", inline: "nearest" });
  panel.focus();
}

function close() {
  wanted = undefined;
  panel.remove();
  opener?.removeAttribute("aria-current");
  opener?.focus();
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && panel.isConnected) close();
});
