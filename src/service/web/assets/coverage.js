// Progressive: without this, cells are links.

const table = document.querySelector("[data-grid]");
// Where the calendar is wider than the window, the last days are seen first.
const region = document.querySelector(".calendar")?.parentElement;
if (region) region.scrollLeft = region.scrollWidth;

/** Shows what a cell leads to beside the table. What cannot be shown there is followed. */
const panel = document.createElement("aside");
panel.className = "panel";
panel.tabIndex = -1;
panel.setAttribute("aria-labelledby", "panel-title");
panel.innerHTML =
  '<div class="panel-head"><h2 id="panel-title"></h2><a>Open as a page</a><button class="plain">Close</button></div><div></div>';
panel.querySelector("button").addEventListener("click", close);
/** The cell whose page stands in the panel, and the link that was followed last. */
let opener;
let wanted;

document.addEventListener("click", async (event) => {
  const link = event.target.closest("a[href^='/cell?']");
  const isOther = event.button !== 0 || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey;
  if (isOther || link === null || !(table?.contains(link) || panel.contains(link))) return;
  event.preventDefault();
  wanted = link;
  const content = await contentOf(link.href);
  if (wanted !== link) return;
  if (content === null) location.href = link.href;
  else show(content, link);
});

async function contentOf(address) {
  try {
    const answer = await fetch(address, { signal: AbortSignal.timeout(10_000) });
    // A login that ended leads elsewhere.
    if (!answer.ok || answer.redirected) return null;
    return new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("#content");
  } catch {
    return null;
  }
}

function show(content, link) {
  const title = content.querySelector("h1");
  title.remove();
  // The page has ids of its own.
  for (const one of content.querySelectorAll("[id]")) one.removeAttribute("id");
  panel.querySelector("h2").textContent = title.textContent;
  panel.querySelector("a").href = link.href;
  panel.lastChild.replaceChildren(...content.childNodes);
  opener?.removeAttribute("aria-current");
  if (table.contains(link)) opener = link;
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
