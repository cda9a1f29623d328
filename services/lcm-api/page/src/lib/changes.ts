// What is different between two readings of the same thing.
import { isObject, own } from './schema.ts';

export interface Change {
  at: string[];
  /** undefined: it was, or is, not there. */
  was: unknown;
  is: unknown;
}

/** Returns the attributes that are different, each as deep as both readings have objects. */
export function changesOf(was: unknown, is: unknown, at: string[] = []): Change[] {
  if (!isObject(was) || !isObject(is)) return JSON.stringify(was) === JSON.stringify(is) ? [] : [{ at, was, is }];
  const names = [...new Set([...Object.keys(was), ...Object.keys(is)])];
  return names.flatMap((each) => changesOf(own(was, each), own(is, each), [...at, each]));
}
