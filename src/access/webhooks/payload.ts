import { localTime } from '../../lib/local-time.ts';
import { masked } from '../../core/privacy.ts';
import type { WebhookCall } from '../webhook-session.ts';
import type { AccessRequest } from '../request.ts';

/** As control servers know the protocols (docs/compatibility.md#control-servers). */
const PROTOCOLS: Readonly<Record<AccessRequest['protocol'], string>> = {
  rtmp: 'RTMP',
  srt: 'SRT',
  webrtc: 'WebRTC',
  mpegts: 'MPEGTS',
  llhls: 'LLHLS',
  hlsv3: 'HLSv3',
  playback: 'Playback',
  thumbnail: 'Thumbnail',
  ovt: 'OVT',
  rtsp: 'RTSP',
  flv: 'FLV',
};

/** Call of a control server about a client that connects now. @param hidesClients leaves out its addresses */
export function callOf({ direction, protocol, url, client }: AccessRequest, hidesClients = false): WebhookCall {
  const { userAgent, user } = client;
  const { address, port, realAddress } = hidesClients ? hidden(client) : client;
  return {
    client: {
      address,
      port,
      real_ip: realAddress,
      ...(userAgent !== undefined && { user_agent: userAgent }),
      ...(user !== undefined && { user }),
    },
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
 * The body of a call. A closing repeats the opening, except for the time.
 * @param time of the client's request, or of the end of its session: milliseconds since the epoch
 */
export function payload(
  { client, direction, protocol, url, new_url }: WebhookCall,
  status: 'opening' | 'closing',
  time: number,
) {
  return {
    client,
    request: { direction, protocol, status, url, ...(new_url !== undefined && { new_url }), time: localTime(time) },
  };
}

/** Whether a session may go on at another node after the death of the one that had it. */
export function canMove({ protocol }: WebhookCall): boolean {
  return [PROTOCOLS.llhls, PROTOCOLS.hlsv3, PROTOCOLS.playback].includes(protocol);
}
