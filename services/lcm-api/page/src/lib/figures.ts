// Figures of a report: bounded texts, and the course of a value as a line.

interface Value {
  timeStamp: string;
  value: number;
}

const WIDTH = 100;
const HEIGHT = 20;

/** Returns a number for people. */
export function figure(value: number | undefined): string {
  return value === undefined || !Number.isFinite(value) ? '' : String(Number(value.toPrecision(6)));
}

/** Returns how many values there are, with their bounds and mean. */
export function numbersOf(values: Value[]): { count: number; least?: number; mean?: number; greatest?: number } {
  if (!values.length) return { count: 0 };
  let [least, greatest, sum] = [Infinity, -Infinity, 0];
  for (const { value } of values) {
    least = Math.min(least, value);
    greatest = Math.max(greatest, value);
    sum += value;
  }
  return { count: values.length, least, mean: sum / values.length, greatest };
}

/** Returns the points of a line in a box of 100 by 20: by time from left to right, the greatest value at the top. */
export function courseOf(values: Value[]): string {
  const { least = 0, greatest = 0 } = numbersOf(values);
  const times = values.map((each) => Date.parse(each.timeStamp));
  const [first = 0, last = 0] = [times[0], times.at(-1)];
  const x = (at: number) => (last > first ? ((at - first) / (last - first)) * WIDTH : 0);
  const y = (value: number) => (greatest > least ? HEIGHT - ((value - least) / (greatest - least)) * HEIGHT : HEIGHT / 2);
  const points = values.map((each, at) => `${x(times[at]!).toFixed(1)},${y(each.value).toFixed(1)}`);
  // One value is a line too.
  return (points.length === 1 ? [...points, `${WIDTH},${HEIGHT / 2}`] : points).join(' ');
}
