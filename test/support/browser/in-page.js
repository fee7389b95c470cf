// What checks.ts asks inside a page. A file of its own, since the types of a browser would be known in all of src.
({
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

  /** Numbers what Tab should reach. Returns how many there are. */
  numberTabStops() {
    const all = "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']";
    const stops = [...document.querySelectorAll(all)].filter(
      (element) =>
        element.checkVisibility({ visibilityProperty: true }) &&
        !element.matches(":disabled, [tabindex='-1'], input[type=radio]:not(:checked)"),
    );
    for (const [index, element] of stops.entries()) element.setAttribute("data-tab-stop", index);
    document.activeElement?.blur();
    return stops.length;
  },

  /** The stop where the keyboard is, and whether that can be seen. */
  tabStop() {
    const element = document.activeElement;
    if (element === null || element === document.body) return null;
    const { outlineStyle, outlineWidth } = getComputedStyle(element);
    const { width, height } = element.getBoundingClientRect();
    const isShown = outlineStyle !== "none" && Number.parseFloat(outlineWidth) > 0 && width * height > 0;
    return { stop: element.getAttribute("data-tab-stop"), isShown, html: element.outerHTML.slice(0, 160) };
  },

  /** The stops that are not among those that were reached. */
  missedTabStops(reached) {
    return [...document.querySelectorAll("[data-tab-stop]")]
      .filter((element) => !reached.includes(element.getAttribute("data-tab-stop")))
      .map((element) => element.outerHTML.slice(0, 160));
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
