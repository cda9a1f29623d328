// The graph of networks as a person of networks draws it: networks as buses, what is on them as rows, addresses where they meet.
import type { Schemas } from './api';

type View = Schemas['TopologyView'];
type Node = View['nodes'][number];

export interface Point {
  name: string;
  addresses: string[];
  floating: string;
  mac: string;
}
export interface Bus {
  id: string;
  name: string;
  node: Node;
  /** The VIM that it is on. */
  vim: string;
  count: number;
}
export interface Row {
  id: string;
  node: Node;
  /** The points on each bus, by its id; "" for those on none. */
  points: Map<string, Point[]>;
}
export interface Group {
  vnf: Node;
  vims: string[];
  rows: Row[];
}
export interface Drawing {
  buses: Bus[];
  groups: Group[];
  problems: Node[];
}

/** Returns the drawing of a graph; with `network`, of what is on that one alone, with the other networks of it. */
export function drawingOf(view: View, network: string): Drawing {
  const nodes = new Map(view.nodes.map((node) => [node.id, node]));
  const has = new Map<string, Node[]>();
  const busOf = new Map<string, string>();
  const vimsOf = new Map<string, string[]>();
  for (const edge of view.edges) {
    const target = nodes.get(edge.target);
    if (!target) continue;
    if (edge.kind === 'has') push(has, edge.source, target);
    else if (edge.kind === 'connects') busOf.set(edge.source, edge.target);
    else push(vimsOf, edge.source, target.name);
  }
  const pointsOf = (owner: string): Map<string, Point[]> => {
    const found = new Map<string, Point[]>();
    for (const each of has.get(owner) ?? []) {
      if (each.kind !== 'connection-point') continue;
      push(found, busOf.get(each.id) ?? '', {
        name: each.name,
        addresses: each.addresses ?? [],
        floating: each.floatingAddress ?? '',
        mac: each.mac ?? '',
      });
    }
    return found;
  };
  const groups: Group[] = [];
  for (const vnf of view.nodes) {
    if (vnf.kind !== 'vnf') continue;
    const parts = (has.get(vnf.id) ?? []).filter((each) => each.kind !== 'connection-point');
    const rows = parts.map((node) => ({ id: node.id, node, points: pointsOf(node.id) }));
    const own = { id: vnf.id, node: vnf, points: pointsOf(vnf.id) };
    // Virtual addresses, which belong to no machine.
    if (own.points.size) rows.push(own);
    const kept = network ? rows.filter((row) => row.points.has(network)) : rows;
    // Problems are first, as in the tree.
    kept.sort((one, other) => rank(one.node) - rank(other.node) || one.node.name.localeCompare(other.node.name));
    if (kept.length || !network) groups.push({ vnf, vims: vimsOf.get(vnf.id) ?? [], rows: kept });
  }
  const counts = new Map<string, number>();
  for (const { rows } of groups) for (const row of rows) for (const [id, points] of row.points) counts.set(id, (counts.get(id) ?? 0) + points.length);
  const buses = view.nodes
    .filter((node) => node.kind === 'network' || node.kind === 'virtual-link')
    .filter((node) => !network || counts.has(node.id))
    .map((node) => ({ id: node.id, name: node.name, node, vim: (vimsOf.get(node.id) ?? []).join(', '), count: counts.get(node.id) ?? 0 }))
    .sort((one, other) => other.count - one.count || one.name.localeCompare(other.name));
  groups.sort((one, other) => rank(one.vnf) - rank(other.vnf) || one.vnf.name.localeCompare(other.vnf.name));
  return { buses, groups, problems: view.nodes.filter((node) => node.health !== 'ok') };
}

/** Returns the networks that one can choose from. */
export function networksOf(view: View): Node[] {
  return view.nodes.filter((node) => node.kind === 'network' || node.kind === 'virtual-link');
}

function rank(node: Node): number {
  return node.health === 'problem' ? 0 : node.health === 'ok' ? 2 : 1;
}

function push<K, V>(into: Map<K, V[]>, key: K, value: V): void {
  const found = into.get(key);
  if (found) found.push(value);
  else into.set(key, [value]);
}
