// Progressive: without this, cells are links and the range is typed into the fields.

const table = document.querySelector("[data-grid]");
const calendar = document.querySelector(".calendar");
const form = document.querySelector("[data-range]");
const note = document.querySelector("[data-range-note]");
const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
/** Where a selection began. */
let anchor;

if (note !== null) {
  note.textContent =
    "In the table of workspaces, arrow keys move between cells. Shift and an arrow key, or Shift and a click, select a range and fill these fields.";
}

function placeOf(link) {
  const cell = link.closest("td");
  return [cell.parentElement.sectionRowIndex, cell.cellIndex];
}

/** The next cell that way which is a link. */
function nextTo(link, [down, right]) {
  const { rows } = link.closest("tbody");
  const [row, column] = placeOf(link);
  let [r, c] = [row + down, column + right];
  for (; rows[r]?.cells[c]?.tagName === "TD"; r += down, c += right) {
    const link = rows[r].cells[c].querySelector("a");
    if (link !== null) return link;
  }
}

/** Moves the focus by an arrow key. Returns the cell that had it and the one that has it now. */
function move(event) {
  const link = event.target.closest("td a");
  const step = STEPS[event.key];
  if (link === null || step === undefined || event.ctrlKey || event.altKey || event.metaKey) return [];
  event.preventDefault();
  const next = nextTo(link, step);
  next?.focus();
  return [link, next];
}

table?.addEventListener("keydown", (event) => {
  const [link, next] = move(event);
  if (next === undefined) return;
  anchor = event.shiftKey ? (anchor ?? link) : undefined;
  choose(anchor, next);
});

table?.addEventListener("click", (event) => {
  const link = event.target.closest("td a");
  if (link === null || !event.shiftKey) return;
  event.preventDefault();
  anchor ??= link;
  choose(anchor, link);
});

// A year of days is one stop of the Tab key, at the last day or where the arrow keys left it.
if (calendar !== null) {
  const days = [...calendar.querySelectorAll("td a")];
  for (const day of days) day.tabIndex = -1;
  let stop = [...(days[0]?.closest("tr").querySelectorAll("td a") ?? [])].at(-1);
  const stay = (day) => {
    if (stop) stop.tabIndex = -1;
    stop = day;
    if (stop) stop.tabIndex = 0;
  };
  stay(stop);
  calendar.addEventListener("keydown", move);
  calendar.addEventListener("focusin", ({ target }) => days.includes(target) && stay(target));
  // Where the calendar is wider than the window, the last days are seen first.
  const region = calendar.parentElement;
  const right = (element) => element.getBoundingClientRect().right;
  if (stop) region.scrollLeft = right(stop) - right(region);
}

const DAY_MS = 86_400_000;

/** Marks the cells between two of them, and fills the fields of the form with their time and workspace. */
function choose(from, to) {
  for (const cell of table.querySelectorAll(".chosen")) cell.classList.remove("chosen");
  if (from === undefined) return;
  const [[r1, c1], [r2, c2]] = [placeOf(from), placeOf(to)];
  const chosen = [...table.tBodies[0].rows]
    .slice(Math.min(r1, r2), Math.max(r1, r2) + 1)
    .flatMap((row) => [...row.cells].slice(Math.min(c1, c2), Math.max(c1, c2) + 1));
  const links = chosen.map((cell) => cell.querySelector("a")).filter((link) => link !== null);
  for (const cell of chosen) cell.classList.add("chosen");
  const workspaces = new Set(chosen.map((cell) => cell.parentElement.dataset.workspace));
  fill("from", Math.min(...links.map((link) => Number(link.dataset.from))));
  const end = Math.max(...links.map((link) => Number(link.dataset.to)));
  const { from: first, until } = form.elements;
  // A form by the day names the last day, one by the hour the end.
  if (until) fill("until", end - DAY_MS);
  else fill("to", end);
  form.elements.workspace.value = workspaces.size === 1 ? [...workspaces][0] : "";
  note.textContent = `Selected: ${first.value} ${until ? `to ${until.value}` : `until ${form.elements.to.value}`}, ${workspaces.size === 1 ? "one workspace" : "all workspaces"}.`;
}

function fill(field, at) {
  const input = form.elements[field];
  input.value = new Date(at).toISOString().slice(0, input.type === "date" ? 10 : 16);
}

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
