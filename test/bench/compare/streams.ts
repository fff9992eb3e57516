import { cpuPercent } from '../server.ts';
import { coldAndWarm, idleCpu, stillPublished, withServerOf, type Comparison } from './comparison.ts';
import { figure } from './figures.ts';

const STREAMS = 10;
/** Parts that have come of each rendition at the end, at one a second: fewer would be less work than is told. */
const LEAST_PARTS = 45;

/** Taking streams in over RTMP and packaging them, with each rendition's newest part fetched once a second. */
export const streams: Comparison = {
  name: 'streams',
  run: ({ clip, root }) =>
    withServerOf(root, async (rig) => {
      const { kiln, publishers, llhls } = rig;
      const idle = await idleCpu(kiln.pid);
      const names = Array.from({ length: STREAMS }, (_, i) => `stream${i}`);
      const begun = performance.now();
      await publishers.ask('start', { port: kiln.ports.rtmp, clip, streams: names });
      const masters = names.map((name) => `/app/${name}/llhls.m3u8`);
      await llhls.ask('poll', { port: kiln.ports.http, masters });
      const figures = await coldAndWarm(async (state, seconds) => {
        const busy = await cpuPercent(kiln.pid, { times: 1, seconds });
        return [figure(`CPU per stream, ${STREAMS} streams, ${state}`, '%', 3, (busy - idle) / STREAMS)];
      }, begun);
      const { renditions, parts, failures } = await llhls.ask('polled', undefined);
      if (failures.length > 0) throw new Error(failures[0]);
      if (renditions < STREAMS || parts < renditions * LEAST_PARTS)
        throw new Error(`${parts} parts of ${renditions} renditions came`);
      await stillPublished(rig, STREAMS);
      return figures;
    }),
};
