// The names of drafts in the storage of the tab (`drafts.ts`), known to the session so that a logout removes them.

export const PREFIX = 'kubevnfm-draft ';

export function dropDrafts(): void {
  try {
    for (const key of Object.keys(sessionStorage)) if (key.startsWith(PREFIX)) sessionStorage.removeItem(key);
  } catch {
    // Without a storage there are no drafts.
  }
}
