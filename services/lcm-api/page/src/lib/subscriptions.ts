// The APIs with subscriptions, for people, and the versions that requests to them name.
export const APIS: Record<string, string> = {
  v1: 'VNF LCM, version 1',
  v2: 'VNF LCM, version 2',
  vnffm: 'Alarms',
  vnfpkgm: 'VNF packages, version 1',
  'vnfpkgm-v2': 'VNF packages, version 2',
  multicloud: 'changes of multi-cloud',
  onap: 'ONAP',
};

/** "": the API has none. */
export const VERSIONS: Record<string, string> = { v1: '1.3.0', v2: '2.0.0', vnfpkgm: '1.0.0', 'vnfpkgm-v2': '2.4.0', vnffm: '1.5.0', vnfpm: '2.2.0', multicloud: '', onap: '' };

export function wanted(filter: string[]): string {
  return filter.length ? filter.join('; ') : 'everything';
}
