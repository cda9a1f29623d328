// What the fields of one form share: faults and warnings by their places, and the ids of their elements.
import { getContext, setContext } from 'svelte';
import type { Fault } from '../../lib/schema';

export interface Warned {
  at: string[];
  text: string;
  nearest?: string | null;
}

const KEY = Symbol('form');

export class Frame {
  faults = $state.raw<Fault[]>([]);
  warned = $state.raw<Warned[]>([]);

  constructor(
    readonly name: string,
    readonly take: (warning: Warned) => void,
    /** Whether defaults are filled in: not in a change, which keeps what it leaves out. */
    readonly hasDefaults: boolean,
  ) {}

  id(at: string[]): string {
    return `${this.name}-${at.map((each) => encodeURIComponent(each)).join('/')}`;
  }

  fault(at: string[]): string {
    return this.faults
      .filter((each) => same(each.at, at))
      .map((each) => each.text)
      .join(' ');
  }

  warnings(at: string[]): Warned[] {
    return this.warned.filter((each) => same(each.at, at));
  }

  /** Returns whether something is wrong at a place or below it, so that its part must be open. */
  isTroubled(at: string[]): boolean {
    return [...this.faults, ...this.warned].some((each) => at.every((part, index) => each.at[index] === part));
  }
}

const same = (one: string[], other: string[]) => one.length === other.length && one.every((each, at) => each === other[at]);

export const setFrame = (frame: Frame) => setContext(KEY, frame);
export const theFrame = (): Frame => getContext(KEY);
