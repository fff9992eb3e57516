import { readMediaName } from '../../lib/media-name.ts';
import { percentDecoded } from '../../lib/percent.ts';
import { accessDenied, Denial } from '../denial.ts';
import { isEnabled } from '../../config/enables.ts';
import type { Guard } from '../guard.ts';
import type { AccessRequest } from '../request.ts';
import { markOf } from '../revocations.ts';
import { checkSignature, checkUse } from './check.ts';
import { splitSignedUrl } from './signed-url.ts';

/** Ports of this server that clients of a module may have used. */
export type PortsOf = (client: Pick<AccessRequest, 'direction' | 'protocol'>) => readonly number[];

/** Admits clients whose URL was signed with the key of the virtual host, where SignedPolicy is enabled for its module. */
export function signedPolicy(portsOf: PortsOf = () => []): Guard {
  return (request, { config }) => {
    const { signedPolicy: signing } = config;
    if (signing === undefined || !isEnabled(signing.enables, request)) return undefined;
    const { url, isPortAssumed, client } = request;
    try {
      const ports = isPortAssumed ? [client.localPort, ...portsOf(request)] : undefined;
      const policy = checkSignature(url, signing, ports);
      checkNames(request);
      checkUse(policy, { ...client, now: Date.now() });
      const marks = [markOf('policy', splitSignedUrl(url, signing).policy)];
      return { marks, ...(policy.streamExpire !== undefined && { until: policy.streamExpire }) };
    } catch (error) {
      throw error instanceof Denial ? accessDenied(error) : error;
    }
  };
}

/** Names may be sent beside the URL, as in RTMP: only those in the URL are signed. */
function checkNames({ url, protocol, app, stream }: AccessRequest): void {
  const [path = ''] = url.replace(/^[^:]+:\/\/[^/?#]*/, '').split(/[?#]/, 1);
  const names = path
    .split('/')
    .filter((name) => name !== '')
    .map(percentDecoded);
  const name = protocol === 'rtmp' ? names.at(-1) : names[1];
  const isFile = protocol === 'flv' && names.length === 2;
  if (names[0] !== app || (isFile ? readMediaName(name ?? '')?.name : name) !== stream)
    throw new Denial('policySignature', 'the signed URL is of another application or stream');
}
