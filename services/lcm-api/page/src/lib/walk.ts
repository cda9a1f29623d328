// What a walk by forms is made from (`parts/Walk.svelte`).
import type { Draft } from './drafts';
import type { Schema, Values } from './schema';

export interface WalkForm {
  /** Unique in the walk. */
  name: string;
  title?: string;
  schema: Schema;
  /** What is filled in at the beginning, beside the defaults. */
  start?: unknown;
  /** A change keeps what it leaves out, so no default is filled in. */
  isChange?: boolean;
}

export interface WalkPlan {
  plan: { name: string; title: string; after: string[] }[];
  warnings: { text: string; field?: string | null; nearest?: string | null }[];
}

/** What a change is of, as it was read: its entity tag is sent, so that the change is refused if it was changed elsewhere meanwhile. */
export interface Seen {
  tag: string;
  /** What a person is to know of it, as in the body of the change. */
  values: Values;
}

/** A change: what it is of, and how that is read again with its forms. */
export interface Basis {
  seen: Seen;
  again: () => Promise<{ seen: Seen; forms: WalkForm[] }>;
  /** Where its changes are listed. */
  where?: { text: string; href: string };
}

/** `made` is what the walk has made already: changed in place, and stored with the draft by `save`. `tag` is that of what is changed. */
export type Ask<T> = (bodies: Record<string, unknown>, made: Draft['made'], save: () => void, tag: string) => Promise<T>;

/** A refusal that concerns one form of several. */
export class RefusedPart extends Error {
  constructor(
    readonly part: string,
    readonly error: unknown,
  ) {
    super();
  }
}
