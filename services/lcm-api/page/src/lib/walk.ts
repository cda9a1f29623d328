// What a walk by forms is made from (`parts/Walk.svelte`).
import type { Draft } from './drafts';
import type { Schema } from './schema';

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

/** `made` is what the walk has made already: changed in place, and stored with the draft by `save`. */
export type Ask<T> = (bodies: Record<string, unknown>, made: Draft['made'], save: () => void) => Promise<T>;

/** A refusal that concerns one form of several. */
export class RefusedPart extends Error {
  constructor(
    readonly part: string,
    readonly error: unknown,
  ) {
    super();
  }
}
