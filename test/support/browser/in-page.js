// What checks.ts asks inside a page. A file of its own, since the types of a browser would be known in all of src.
({
  /** What axe finds, in words: handing its whole answer over takes longer than looking. */
  async violations(options) {
    const { violations, passes } = await axe.run(document, options);
    const found = violations.flatMap(({ id, help, nodes }) =>
      nodes
        .slice(0, 5)
        .map(({ html, failureSummary }) => `${id}: ${help}\n${html.slice(0, 300)}\n${failureSummary}`),
    );
    return { found, passed: passes.length };
  },

  /** What makes the page itself scroll sideways. */
  tooWide() {
    const { scrollWidth, clientWidth } = document.documentElement;
    if (scrollWidth <= clientWidth) return [];
    const culprits = [...document.querySelectorAll("body *")].filter((element) => {
      const region = element.parentElement?.closest("[tabindex]") ?? null;
      return region === null && element.getBoundingClientRect().right > clientWidth + 1;
    });
    return [
      `page of ${scrollWidth} px in ${clientWidth} px`,
      ...culprits.slice(0, 5).map((element) => element.outerHTML.slice(0, 200)),
    ];
  },

  /** Notes from now on which of the things that Tab should reach it does. Returns how many there are. */
  watchTabStops() {
    const all = "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']";
    const stops = [...document.querySelectorAll(all)].filter(
      (element) =>
        element.checkVisibility({ visibilityProperty: true }) &&
        !element.matches(":disabled, [tabindex='-1'], input[type=radio]:not(:checked)"),
    );
    document.activeElement?.blur();
    // Whether it can be seen where the keyboard is, by what it reached.
    const reached = new Map();
    document.addEventListener("focusin", ({ target }) => {
      const { outlineStyle, outlineWidth } = getComputedStyle(target);
      const { width, height } = target.getBoundingClientRect();
      reached.set(
        target,
        outlineStyle !== "none" && Number.parseFloat(outlineWidth) > 0 && width * height > 0,
      );
    });
    globalThis.tabStopsOfTest = { stops, reached };
    return stops.length;
  },

  /** What Tab reached without a sign of it, and what it did not reach. */
  tabStops() {
    const { stops, reached } = globalThis.tabStopsOfTest;
    const shown = (elements) => elements.map((element) => element.outerHTML.slice(0, 160));
    return {
      unseen: shown([...reached].filter(([, isShown]) => !isShown).map(([element]) => element)),
      missed: shown(stops.filter((element) => !reached.has(element))),
    };
  },

  /** The texts that no element shows, whole or with the whole as its title. */
  missingTexts(texts) {
    const shown = new Set();
    for (const { textContent, title } of document.querySelectorAll("main bdi, main option, main [title]")) {
      shown.add(textContent.trim()).add(title);
    }
    return texts.filter((text) => !shown.has(text));
  },

  /** What the chart tells of each bucket to whoever points at its middle. */
  tooltips() {
    return [...document.querySelectorAll(".chart .hit")].map((bucket) => {
      bucket.scrollIntoView({ block: "center", inline: "center" });
      const { x, y, width, height } = bucket.getBoundingClientRect();
      const at = document.elementFromPoint(x + width / 2, y + height / 2);
      return at?.querySelector(":scope > title")?.textContent ?? null;
    });
  },

  /** The texts of the cells of a table's body. */
  cells(selector) {
    return [...document.querySelectorAll(`${selector} tbody tr`)].map((row) =>
      [...row.cells].map(({ textContent }) => textContent.replace(/\s+/g, " ").trim()),
    );
  },

  /** Elements that a name has become. */
  injected() {
    const all =
      "main img, main svg[onload], main script:not([src]), main [onfocus], main [onmouseover], main b";
    return [...document.querySelectorAll(all)].map((element) => element.outerHTML.slice(0, 160));
  },

  /** What moves, or would. */
  moving() {
    const moves = (durations) => durations.split(",").some((one) => Number.parseFloat(one) > 0.01);
    return [...document.querySelectorAll("*")]
      .filter((element) => {
        const { transitionDuration, animationName, animationDuration } = getComputedStyle(element);
        return moves(transitionDuration) || (animationName !== "none" && moves(animationDuration));
      })
      .map((element) => element.outerHTML.slice(0, 120));
  },
});
