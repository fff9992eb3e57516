import { localTime } from '../../lib/local-time.ts';
import { masked } from '../../core/privacy.ts';
import type { OpeningCall } from '../opening.ts';
import type { AccessRequest } from '../request.ts';

/** As control servers know the protocols (docs/compatibility.md#control-servers). */
const PROTOCOLS: Readonly<Record<AccessRequest['protocol'], string>> = {
  rtmp: 'RTMP',
  srt: 'SRT',
  webrtc: 'WebRTC',
  mpegts: 'MPEGTS',
  llhls: 'LLHLS',
  hlsv3: 'HLSv3',
  thumbnail: 'Thumbnail',
  ovt: 'OVT',
};

/** What a control server is asked of a client that comes now. @param hidesClients tells it no addresses */
export function callOf({ direction, protocol, url, client }: AccessRequest, hidesClients = false): OpeningCall {
  const { userAgent } = client;
  const { address, port, realAddress } = hidesClients ? hidden(client) : client;
  return {
    client: { address, port, real_ip: realAddress, ...(userAgent !== undefined && { user_agent: userAgent }) },
    direction,
    protocol: PROTOCOLS[protocol],
    url,
    time: Date.now(),
  };
}

function hidden({ address, realAddress }: AccessRequest['client']) {
  return { address: masked(address), port: 0, realAddress: masked(realAddress) };
}

/**
 * The body of a call. A closing repeats what the opening said, but for its time.
 * @param time when the client asked, or its session ended: milliseconds since the epoch
 */
export function payload(
  { client, direction, protocol, url, new_url }: OpeningCall,
  status: 'opening' | 'closing',
  time: number,
) {
  return {
    client,
    request: { direction, protocol, status, url, ...(new_url !== undefined && { new_url }), time: localTime(time) },
  };
}

/** Whether a session may go on at another node after the death of the one that had it. */
export function canMove({ protocol }: OpeningCall): boolean {
  return protocol === PROTOCOLS.llhls || protocol === PROTOCOLS.hlsv3;
}
