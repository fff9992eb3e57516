import { setTimeout as delay } from 'node:timers/promises';
import type { Kiln } from '../support/server/kiln.ts';
import { datagrams } from './datagrams.ts';
import { deliver, deliverDatagrams, deliverSecurely } from './deliver.ts';
import { httpAttack, type HTTP_CLIENTS, type LivePaths } from './http-attacks.ts';
import { hostileOvtOrigin, ovtRequests } from './ovt-attacks.ts';
import { tsDatagrams } from './mpegts-attacks.ts';
import type { Random } from './random.ts';
import { rtmpAttack, rtmpPlayAttack } from './rtmp-attacks.ts';
import { rtpAttack } from './rtp-attacks.ts';
import { hostileRtspServer } from './rtsp-attacks.ts';
import { srtAttack } from './srt-attacks.ts';
import { tlsAttack } from './tls-attacks.ts';
import { websocketAttack } from './websocket-attacks.ts';

/** After which a port of MPEG-TS takes another sender. */
export const MPEGTS_SILENCE_MS = 100;

/** A server that is attacked. */
export interface Besieged {
  readonly kiln: Kiln;
  /** UDP ports of MPEG-TS. */
  readonly mpegts: readonly number[];
}

/** The same with what is live on it. */
export interface Target extends Besieged {
  readonly live: LivePaths;
}

export interface Attack {
  /** How often it comes among the others. */
  readonly weight: number;
  run(target: Target, random: Random): Promise<void>;
}

const http =
  (client: keyof typeof HTTP_CLIENTS): Attack['run'] =>
  ({ kiln, live }, random) => {
    const { port, bytes } = httpAttack(client, random, live);
    return deliver(kiln.ports[port], bytes, random);
  };

/** What strangers do to each protocol. */
export const ATTACKS: Readonly<Record<string, Attack>> = {
  rtmp: { weight: 4, run: ({ kiln }, random) => deliver(kiln.ports.rtmp, rtmpAttack(random), random) },
  'rtmp-play': { weight: 2, run: ({ kiln }, random) => deliver(kiln.ports.rtmp, rtmpPlayAttack(random), random) },
  rtmps: {
    weight: 1,
    run: ({ kiln }, random) => {
      const port = kiln.ports.rtmps as number;
      const inside = rtmpAttack(random);
      return random.chance(0.5)
        ? deliverSecurely(port, inside, random)
        : deliver(port, tlsAttack(random, inside), random);
    },
  },
  llhls: { weight: 2, run: http('viewer') },
  api: { weight: 1, run: http('manager') },
  'whip-whep': { weight: 1, run: http('whep') },
  signalling: { weight: 1, run: ({ kiln }, random) => deliver(kiln.ports.http, websocketAttack(random), random) },
  rtp: { weight: 0.3, run: ({ kiln }, random) => rtpAttack(kiln, random) },
  ice: { weight: 0.3, run: ({ kiln }, random) => deliverDatagrams(random.pick(kiln.ports.ice), datagrams(random)) },
  ovt: {
    weight: 1,
    run: ({ kiln }, random) => {
      const port = kiln.ports.ovt as number;
      return random.chance(0.5)
        ? hostileOvtOrigin(kiln, random)
        : deliver(port, ovtRequests(random, `127.0.0.1:${port}`), random);
    },
  },
  rtsp: { weight: 1, run: ({ kiln }, random) => hostileRtspServer(kiln, random) },
  srt: {
    weight: 1,
    run: ({ kiln: { ports } }, random) => srtAttack((random.chance(0.8) ? ports.srt : ports.srtPlay) as number, random),
  },
  mpegts: {
    weight: 1,
    run: async ({ mpegts }, random) => {
      await deliverDatagrams(random.pick(mpegts), tsDatagrams(random));
      // the next one is another sender
      await delay(1.5 * MPEGTS_SILENCE_MS);
    },
  },
  noise: { weight: 0.7, run: ({ kiln }, random) => deliver(kiln.ports.http, random.bytes(random.below(400)), random) },
};
