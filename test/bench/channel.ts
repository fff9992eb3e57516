import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Kiln } from '../support/server/kiln.ts';
import { ffmpeg } from '../support/media/media-files.ts';
import type { Measurement } from './measurement.ts';
import { costLine, ROUNDS } from './ratio.ts';
import { cpuPercent, cpuRounds, withServer } from './server.ts';

const CHANNELS = 5;
const SETTLE_MS = 5000;
/** Of a round, in which both are measured at once. */
const SECONDS = 6;
const CHANNELS_URL = '/v1/vhosts/default/apps/app/scheduledChannels';

/** What a bypassed channel of a file costs, packaged for LL-HLS, beside an ffmpeg that copies the file in real time. */
export const channel: Measurement = {
  name: 'channel',
  run: async ({ clip, folder }) => {
    const file = join(folder, 'channel.mp4');
    await ffmpeg('-stream_loop', '20', '-i', clip, '-c', 'copy', file);
    return withServer(
      async ({ kiln }) => {
        const idle = await cpuPercent(kiln.pid, { times: 1 });
        for (let i = 0; i < CHANNELS; i++) await createChannel(kiln, `channel${i}`);
        const copies = Array.from({ length: CHANNELS }, () => copyInRealTime(file));
        try {
          await delay(SETTLE_MS);
          const pids = [[kiln.pid], copies.map(({ pid = 0 }) => pid)];
          const [own = [], others = []] = await cpuRounds(pids, { times: ROUNDS, seconds: SECONDS });
          return [
            costLine({
              what: `CPU of a bypassed channel of a file, ${CHANNELS} channels`,
              unit: '%',
              digits: 2,
              values: own.map((all) => (all - idle) / CHANNELS),
              references: others.map((all) => all / CHANNELS),
              of: 'ffmpeg -re -c copy',
              reached: 1.9,
            }),
          ];
        } finally {
          await Promise.all(
            copies.map(async (child) => {
              child.kill('SIGKILL');
              await once(child, 'close');
            }),
          );
        }
      },
      { providers: `<Schedule><MediaRootDir>${folder}</MediaRootDir></Schedule>` },
    );
  },
};

async function createChannel(kiln: Kiln, name: string): Promise<void> {
  const { status } = await kiln.api(CHANNELS_URL, 'POST', {
    stream: { name, bypassTranscoder: true, videoTrack: true, audioTrack: true },
    programs: [
      { name: 'all day', scheduled: '2026-01-01T00:00:00Z', repeat: true, items: [{ url: 'file://channel.mp4' }] },
    ],
  });
  if (status !== 201) throw new Error(`the channel was answered ${status}`);
}

function copyInRealTime(file: string): ChildProcess {
  const quiet = ['-loglevel', 'error', '-nostdin'];
  return spawn('ffmpeg', [...quiet, '-re', '-i', file, '-c', 'copy', '-f', 'mpegts', '-y', '/dev/null']);
}
