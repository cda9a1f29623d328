// Whether anyone sees the page. A browser gives one host six connections for all its tabs, so a hidden one gives its streams up.

const PATIENCE_MS = 10_000;

let unseen = new AbortController();
let timer: ReturnType<typeof setTimeout> | undefined;
const waiting: (() => void)[] = [];

document.addEventListener('visibilitychange', () => {
  clearTimeout(timer);
  if (document.hidden) timer = setTimeout(() => unseen.abort(), PATIENCE_MS);
  else if (unseen.signal.aborted) {
    unseen = new AbortController();
    for (const resolve of waiting.splice(0)) resolve();
  }
});

/** Returns a signal that is given once the page has been hidden for a while. */
export async function seen(): Promise<AbortSignal> {
  while (unseen.signal.aborted) await new Promise<void>((resolve) => waiting.push(resolve));
  return unseen.signal;
}
