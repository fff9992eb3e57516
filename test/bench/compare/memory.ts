import { setTimeout as delay } from 'node:timers/promises';
import { cpuPercent } from '../server.ts';
import { endWebrtcViewers, memoryOf, stillPublished, withServerOf, type Comparison } from './comparison.ts';
import { figure } from './figures.ts';

const STREAMS = 10;
/** Until a server has let go of what it needed before. */
const REST_MS = 10_000;
const IDLE_SECONDS = 20;
const WARM_MS = 40_000;

/** Memory of a server and its children at rest, before and after the first WebRTC viewer, and with streams. */
export const memory: Comparison = {
  name: 'memory',
  run: ({ clip, root }) =>
    withServerOf(root, async (rig) => {
      const { kiln, publishers, webrtc } = rig;
      const port = kiln.ports.rtmp;
      const mib = () => memoryOf(kiln.pid);
      await delay(REST_MS);
      const cpu = await cpuPercent(kiln.pid, { times: 1, seconds: IDLE_SECONDS });
      const idle = mib();

      await publishers.ask('start', { port, clip, streams: ['first'] });
      await kiln.liveStream('first');
      await webrtc.ask('start', { url: kiln.httpUrl('/app/first?direction=whep'), count: 1, audio: true });
      await endWebrtcViewers(rig, 'first');
      await publishers.ask('stop', ['first']);
      // encoders run for ten seconds after their last viewer
      await delay(2 * REST_MS);
      const workers = mib();

      const streams = Array.from({ length: STREAMS }, (_, i) => `stream${i}`);
      await publishers.ask('start', { port, clip, streams });
      await delay(WARM_MS);
      const busy = mib();
      await stillPublished(rig, STREAMS);
      return [
        figure('idle PSS before the first WebRTC viewer', 'MiB', 1, idle),
        figure('idle PSS with workers, after the first WebRTC viewer', 'MiB', 1, workers),
        figure('idle CPU', '%', 2, cpu),
        figure(`PSS with ${STREAMS} streams, warm`, 'MiB', 1, busy),
      ];
    }),
};
