// Places for the boxes of a graph without cycles, from left to right: a column for each rank, few crossings, straight chains. It takes
// a time that grows with boxes and lines, so a plan of thousands of steps does not stop the page.

export interface Box {
  key: string;
  after: Iterable<string>;
}

export interface Line {
  from: string;
  to: string;
  points: { x: number; y: number }[];
}

export interface Places {
  width: number;
  height: number;
  /** The left upper corner of each box. */
  corners: Map<string, { x: number; y: number }>;
  lines: Line[];
}

export const WIDTH = 210;
export const HEIGHT = 40;
const GAP = 14;
const COLUMN = 52;
const MARGIN = 8;
/** A line over several columns keeps a place in each, unless there are very many of them. */
const MOST_BENDS = 20_000;
const SWEEPS = 4;

interface Item {
  rank: number;
  left: Item[];
  right: Item[];
  height: number;
  at: number;
  y: number;
}

/** Returns how many steps are on the longest way to each box. */
export function ranks(boxes: Box[]): Map<string, number> {
  const found = new Map(boxes.map((box) => [box.key, 0]));
  const next = new Map<string, string[]>();
  const missing = new Map<string, number>();
  for (const box of boxes) {
    let count = 0;
    for (const before of new Set(box.after)) {
      if (!found.has(before) || before === box.key) continue;
      count++;
      const followers = next.get(before);
      if (followers) followers.push(box.key);
      else next.set(before, [box.key]);
    }
    missing.set(box.key, count);
  }
  const ready = boxes.filter((box) => !missing.get(box.key)).map((box) => box.key);
  for (const key of ready) {
    for (const follower of next.get(key) ?? []) {
      found.set(follower, Math.max(found.get(follower)!, found.get(key)! + 1));
      missing.set(follower, missing.get(follower)! - 1);
      if (!missing.get(follower)) ready.push(follower);
    }
  }
  return found;
}

export function placed(boxes: Box[]): Places {
  const rankOf = ranks(boxes);
  const items = new Map<string, Item>();
  const columns: Item[][] = [];
  const make = (rank: number, height: number): Item => {
    const item = { rank, left: [], right: [], height, at: 0, y: 0 };
    (columns[rank] ??= []).push(item);
    return item;
  };
  for (const box of boxes) items.set(box.key, make(rankOf.get(box.key)!, HEIGHT));

  const ways: { from: string; to: string; over: Item[] }[] = [];
  let bends = 0;
  for (const box of boxes) {
    for (const before of new Set(box.after)) {
      const [from, to] = [items.get(before), items.get(box.key)!];
      // A line back would be a plan that never ends; the gateway makes none.
      if (!from || from.rank >= to.rank) continue;
      const over: Item[] = [];
      bends += to.rank - from.rank - 1;
      if (bends <= MOST_BENDS) for (let rank = from.rank + 1; rank < to.rank; rank++) over.push(make(rank, 0));
      const way = [from, ...over, to];
      for (let at = 1; at < way.length; at++) {
        way[at - 1]!.right.push(way[at]!);
        way[at]!.left.push(way[at - 1]!);
      }
      ways.push({ from: before, to: box.key, over });
    }
  }

  for (let sweep = 0; sweep <= SWEEPS; sweep++) {
    const isForward = sweep % 2 === 0;
    for (const column of isForward ? columns : [...columns].reverse()) arrange(column, isForward ? 'left' : 'right');
  }
  for (const column of columns) stack(column, () => 0);
  for (let sweep = 0; sweep <= SWEEPS; sweep++) {
    const side = sweep % 2 === 0 ? 'left' : 'right';
    for (const column of side === 'left' ? columns : [...columns].reverse()) stack(column, (item) => middle(item, side));
  }

  let [top, bottom] = [Infinity, 0];
  for (const { y, height } of columns.flat()) [top, bottom] = [Math.min(top, y - height / 2), Math.max(bottom, y + height / 2)];
  const x = (rank: number) => MARGIN + rank * (WIDTH + COLUMN);
  const y = (item: Item) => Math.round(item.y - top + MARGIN);
  const lines = ways.map(({ from, to, over }): Line => {
    const [first, last] = [items.get(from)!, items.get(to)!];
    const bend = over.flatMap((each) => [
      { x: x(each.rank), y: y(each) },
      { x: x(each.rank) + WIDTH, y: y(each) },
    ]);
    return { from, to, points: [{ x: x(first.rank) + WIDTH, y: y(first) }, ...bend, { x: x(last.rank), y: y(last) }] };
  });
  return {
    width: columns.length ? x(columns.length - 1) + WIDTH + MARGIN : 0,
    height: columns.length ? Math.round(bottom - top) + 2 * MARGIN : 0,
    corners: new Map([...items].map(([key, item]) => [key, { x: x(item.rank), y: y(item) - HEIGHT / 2 }])),
    lines,
  };
}

/** Sorts a column by the middle of what its items are joined to on one side; those without keep their place. */
function arrange(column: Item[], side: 'left' | 'right'): void {
  const wanted = new Map(column.map((item) => [item, mean(item[side].map((each) => each.at)) ?? item.at]));
  column.sort((one, other) => wanted.get(one)! - wanted.get(other)!);
  column.forEach((item, at) => (item.at = at));
}

function mean(numbers: number[]): number | null {
  return numbers.length ? numbers.reduce((sum, each) => sum + each, 0) / numbers.length : null;
}

/** Returns where an item would be best: at the side from which it comes, or if that has nothing, where it goes. */
function middle(item: Item, side: 'left' | 'right'): number {
  return mean(item[side].map((each) => each.y)) ?? mean(item[side === 'left' ? 'right' : 'left'].map((each) => each.y)) ?? item.y;
}

/** Places a column: in its order, with gaps, and together as near as possible to where each item is wanted (isotonic regression). */
function stack(column: Item[], wanted: (item: Item) => number): void {
  const offsets: number[] = [];
  let offset = 0;
  column.forEach((item, at) => {
    if (at) offset += (column[at - 1]!.height + item.height) / 2 + GAP;
    offsets.push(offset);
  });
  const blocks: { sum: number; count: number }[] = [];
  column.forEach((item, at) => {
    let block = { sum: wanted(item) - offsets[at]!, count: 1 };
    for (let last = blocks.at(-1); last && last.sum / last.count > block.sum / block.count; last = blocks.at(-1)) {
      block = { sum: last.sum + block.sum, count: last.count + block.count };
      blocks.pop();
    }
    blocks.push(block);
  });
  let at = 0;
  for (const { sum, count } of blocks) for (let each = 0; each < count; each++, at++) column[at]!.y = sum / count + offsets[at]!;
}
