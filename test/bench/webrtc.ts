import { setTimeout as delay } from 'node:timers/promises';
import { atMost, number, type Measurement } from './measurement.ts';
import { cpuPercent, withServer } from './server.ts';

const VIEWERS = 20;
/** Until what runs often is compiled, as on a server that has been up for a while. */
const SETTLE_MS = 8000;

/** What the server adds between RTMP in and WebRTC out, and what a viewer costs. */
export const webrtc: Measurement = {
  name: 'webrtc',
  run: ({ clip }) =>
    withServer(async ({ kiln, publishers, webrtc: viewers }) => {
      await publishers.ask('start', { port: kiln.ports.rtmp, clip, streams: ['live'] });
      await kiln.liveStream('live');
      await delay(SETTLE_MS);
      const unwatched = await cpuPercent(kiln.pid);
      await viewers.ask('start', { url: kiln.httpUrl('/app/live?direction=whep'), count: VIEWERS });
      await delay(SETTLE_MS);
      await viewers.ask('reset', undefined);
      const watched = await cpuPercent(kiln.pid);
      const { frames } = await publishers.ask('count', undefined);
      const { p50, p99, lost } = await viewers.ask('report', { lastFrame: frames });
      return [
        atMost({
          what: `WebRTC added delay p50 / p99, ${VIEWERS} viewers`,
          unit: 'ms',
          digits: 1,
          values: [p50, p99],
          budget: [3, 10],
          reference: `${lost} packets lost`,
        }),
        atMost({
          what: 'CPU per WebRTC viewer',
          unit: '%',
          digits: 3,
          values: [(watched - unwatched) / VIEWERS],
          budget: [0.2],
          reference: `${number(unwatched, 1)} % without viewers`,
        }),
      ];
    }),
};
