// The APIs with subscriptions, for people.
export const APIS: Record<string, string> = {
  v1: 'VNF LCM, version 1',
  v2: 'VNF LCM, version 2',
  vnfpkgm: 'VNF packages, version 1',
  'vnfpkgm-v2': 'VNF packages, version 2',
  multicloud: 'changes of multi-cloud',
  onap: 'ONAP',
};

export function wanted(filter: string[]): string {
  return filter.length ? filter.join('; ') : 'everything';
}
