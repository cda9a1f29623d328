// The names of places in a form, as its schema has them.
import { flat, own, valueAt, type Schema } from './schema';
import { titled } from './words';

/** Parts around a place, and the place: more of them say no more. */
const MOST = 3;

export function placeTitle(schema: Schema, value: unknown, at: string[]): string {
  const words: string[] = [];
  let rules = flat(schema, value);
  for (const [index, name] of at.entries()) {
    if (name === '…') break;
    const inside = own(rules.properties, name) ?? rules['items'] ?? rules['additionalProperties'];
    rules = flat(inside as Schema, valueAt(value, at.slice(0, index + 1)));
    words.push(/^[0-9]+$/.test(name) ? String(Number(name) + 1) : typeof rules.title === 'string' ? rules.title : titled(name));
  }
  return words.slice(-MOST).join(' › ');
}
