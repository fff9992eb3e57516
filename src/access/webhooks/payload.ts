import { localTime } from '../../core/local-time.ts';
import type { OpeningCall } from '../opening.ts';
import type { AccessRequest } from '../request.ts';

/** As control servers know the protocols (facts/03-access-control.md). */
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

/** What a control server is asked of a client that comes now. */
export function callOf({ direction, protocol, url, client }: AccessRequest): OpeningCall {
  const { address, port, realAddress, userAgent } = client;
  return {
    client: { address, port, real_ip: realAddress, ...(userAgent !== undefined && { user_agent: userAgent }) },
    direction,
    protocol: PROTOCOLS[protocol],
    url,
    time: Date.now(),
  };
}

/** The body of a call. A closing repeats what the opening said. */
export function payload(
  { client, direction, protocol, url, new_url, time }: OpeningCall,
  status: 'opening' | 'closing',
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
