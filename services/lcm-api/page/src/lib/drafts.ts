// What was filled in and not sent: in the storage of the tab, without secrets, for the user who has filled it in.
import { session } from './session.svelte';
import { PREFIX } from './stored';
import type { Seen } from './walk';

export interface Draft {
  bodies: Record<string, unknown>;
  /** What the walk has made already, so that it is not made twice. */
  made: Record<string, string>;
  /** What a change was filled in for. */
  seen?: Seen | undefined;
}

interface Stored extends Draft {
  subject: string;
}

const LARGEST = 300_000;

export function storedDraft(key: string): Draft | null {
  try {
    const found = JSON.parse(sessionStorage.getItem(PREFIX + key) ?? 'null') as Stored | null;
    return found?.subject === session.caller?.subject ? found : null;
  } catch {
    return null;
  }
}

export function storeDraft(key: string, draft: Draft): void {
  const subject = session.caller?.subject;
  if (!subject) return;
  const text = JSON.stringify({ ...draft, subject } satisfies Stored);
  try {
    if (text.length <= LARGEST) sessionStorage.setItem(PREFIX + key, text);
  } catch {
    // A full or forbidden storage: the draft lasts as long as its view.
  }
}

export function dropDraft(key: string): void {
  try {
    sessionStorage.removeItem(PREFIX + key);
  } catch {
    // Without a storage there is no draft.
  }
}
