import { setTimeout as delay } from 'node:timers/promises';
import { median, percentile } from '../support/load/statistics.ts';
import { atMost, number, type Measurement } from './measurement.ts';
import { withServer } from './server.ts';

const JOINS = 12;
const GOP_MS = 1000;
const PLAYERS = 5;

/** From a viewer's first step to the first picture, on a live stream and on one that begins. */
export const opening: Measurement = {
  name: 'opening',
  run: ({ clip }) =>
    withServer(async ({ kiln, publishers, webrtc, llhls }) => {
      const { rtmp, http: port } = kiln.ports;
      await publishers.ask('start', { port: rtmp, clip, streams: ['live'] });
      await kiln.liveStream('live');
      const joins: number[] = [];
      for (let i = 0; i < JOINS; i++) {
        // spread over the GOP, whatever the joins before took
        await delay(((i * 0.618) % 1) * GOP_MS);
        joins.push(await webrtc.ask('open', { url: kiln.httpUrl('/app/live?direction=whep') }));
      }
      const starts: number[] = [];
      for (let i = 0; i < PLAYERS; i++) {
        const { started, firstPart } = await llhls.ask('open', { port, master: '/app/live/llhls.m3u8', hints: true });
        starts.push(firstPart - started);
      }
      const births: number[] = [];
      for (let i = 0; i < PLAYERS; i++) {
        const stream = `born${i}`;
        const opened = llhls.ask('open', { port, master: `/app/${stream}/llhls.m3u8`, hints: true });
        const [published = 0] = await publishers.ask('start', { port: rtmp, clip, streams: [stream] });
        births.push((await opened).firstPart - published);
        await publishers.ask('stop', [stream]);
      }
      const [fastest, slowest] = [percentile(joins, 0) / 1000, percentile(joins, 1) / 1000];
      return [
        atMost({
          what: 'WebRTC opening to first key frame (1 s GOP)',
          unit: 's',
          digits: 2,
          values: [median(joins) / 1000],
          budget: [0.55],
          reference: `fastest ${number(fastest, 2)} s, slowest ${number(slowest, 2)} s`,
        }),
        atMost({
          what: 'first LL-HLS viewer to first part, since it / since the publisher began',
          unit: 's',
          digits: 2,
          values: [median(starts) / 1000, median(births) / 1000],
          budget: [1, 1],
        }),
      ];
    }),
};
