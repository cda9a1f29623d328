// Views whose state is in no event of the stream are read again at intervals, while they are seen.

/** For `$effect`: calls `read` every so many milliseconds; returns the function that ends it. */
export function repeat(read: () => void, everyMs: number): () => void {
  const timer = setInterval(() => {
    if (!document.hidden) read();
  }, everyMs);
  return () => clearInterval(timer);
}
