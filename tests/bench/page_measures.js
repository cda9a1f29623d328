// What the bench measures inside the page: the tester's, not the page's.
globalThis.measures = (() => {
  const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
  const painted = async () => (await frame(), await frame());

  /** Counts the longest time between two frames until `stop` is called. */
  function watchFrames() {
    let [last, longest, goesOn] = [performance.now(), 0, true];
    const next = (now) => {
      longest = Math.max(longest, now - last);
      last = now;
      if (goesOn) requestAnimationFrame(next);
    };
    requestAnimationFrame(next);
    return () => ((goesOn = false), Math.max(longest, performance.now() - last));
  }

  async function until(found) {
    if (found()) return;
    await new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`never there: ${found}`)), 60_000);
      const observer = new MutationObserver(() => {
        if (!found()) return;
        observer.disconnect();
        clearTimeout(timer);
        resolve();
      });
      observer.observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
    });
  }

  async function measured(act, found) {
    const stop = watchFrames();
    performance.clearResourceTimings();
    const began = performance.now();
    act();
    await until(found);
    await painted();
    const ms = performance.now() - began;
    const longest = stop();
    const reads = performance.getEntriesByType('resource').filter((each) => each.name.includes('/kubevnfm/v1/') && !each.name.includes('/events'));
    return { ms, longest, readMs: Math.max(0, ...reads.map((each) => each.duration)) };
  }

  const withText = (selector, text) => [...document.querySelectorAll(selector)].find((each) => each.textContent.includes(text));

  // The messages of tasks are among the waits, too, which are read with the view.
  const chosen = () => document.querySelector('section[aria-label="Chosen step or task"]');
  const seen = new Map();
  const times = new Map();

  return {
    clicked: (click, there, text) => measured(() => withText(click, text).click(), () => document.querySelector(there)),

    /** Goes to a place as a link of the page does. */
    opened(path, there) {
      const old = location.pathname + location.search === path ? null : document.querySelector('h1');
      return measured(
        () => {
          const link = Object.assign(document.createElement('a'), { href: path });
          document.body.append(link);
          link.click();
          link.remove();
        },
        () => document.querySelector('h1') !== old && document.querySelector(there),
      );
    },

    nextPage() {
      const first = document.querySelector('tbody tr:first-child a').href;
      return measured(
        () => withText('nav[aria-label=Pages] a', 'Next page').click(),
        () => document.querySelector('tbody tr:nth-child(50)') && document.querySelector('tbody tr:first-child a').href !== first,
      );
    },

    /** Scrolls a box down and up again for so many ms, at each frame a little. */
    async scrolled(selector, ms) {
      const box = document.querySelector(selector);
      const began = performance.now();
      let [frames, longest, last, step, heap] = [0, 0, began, 40, 0];
      while (last - began < ms) {
        box.scrollTop += step;
        if (box.scrollTop <= 0 || box.scrollTop + box.clientHeight >= box.scrollHeight - 1) step = -step;
        const now = await frame();
        longest = Math.max(longest, now - last);
        last = now;
        frames++;
        heap = Math.max(heap, performance.memory.usedJSHeapSize);
      }
      return { framesPerS: (frames * 1000) / (last - began), longest, heapMib: heap / 2 ** 20 };
    },

    markers() {
      const look = () => {
        const found = /marker (\d+) (\d+) end/.exec(chosen()?.textContent ?? '');
        if (found && !times.has(+found[1])) times.set(+found[1], [+found[2], Date.now()]);
      };
      new MutationObserver(look).observe(document, { subtree: true, childList: true, characterData: true });
    },
    /** Returns for each marker the ms until it was drawn; one that a later one has replaced was drawn with that. */
    drawnMarkers(count) {
      const all = [...times].sort(([one], [other]) => one - other);
      return Array.from({ length: count }, (_, number) => {
        const [at, [published, drawn]] = all.find(([drawn]) => drawn >= number);
        // Markers are published 100 ms apart.
        return drawn - published + (at - number) * 100;
      });
    },

    /** Remembers when each row of the list of operations has reached what it shows. */
    rows() {
      const look = () => {
        for (const row of document.querySelectorAll('tbody tr')) {
          const link = row.querySelector('a[href^="/ui/operations/"]');
          if (!link) continue;
          const text = row.textContent;
          const rank = /✓ completed|given up|rolled back/.test(text) ? 1000 : +(/(\d+) of \d+/.exec(text)?.[1] ?? 0);
          const id = link.getAttribute('href').split('/').at(-1);
          const ranks = seen.get(id) ?? [];
          if (!ranks.length || ranks.at(-1)[0] !== rank) ranks.push([rank, Date.now()]);
          seen.set(id, ranks);
        }
      };
      look();
      new MutationObserver(look).observe(document, { subtree: true, childList: true, characterData: true });
    },
    rowsSeen: () => Object.fromEntries(seen),

    /** Makes the page believe that it is hidden; without a screen Chromium hides none. */
    hide(isHidden) {
      Object.defineProperty(document, 'hidden', { configurable: true, get: () => isHidden });
      document.dispatchEvent(new Event('visibilitychange'));
    },
    async shownAfterHiding(text) {
      const began = performance.now();
      measures.hide(false);
      await until(() => chosen()?.textContent.includes(text));
      return performance.now() - began;
    },
  };
})();
