import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Kiln } from '../support/server/kiln.ts';
import { ffmpeg } from '../support/media/media-files.ts';
import { atMost, number, type Measurement } from './measurement.ts';
import { cpuPercent, withServer } from './server.ts';

const CHANNELS = 5;
const SETTLE_MS = 5000;
/** Seconds of media that both are measured over, at once. */
const SECONDS = 20;
const CHANNELS_URL = '/v1/vhosts/default/apps/app/scheduledChannels';
/** Times the CPU of `ffmpeg -re -c copy`. */
const BUDGET = [4];

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
          const pids = [kiln.pid, ...copies.map(({ pid = 0 }) => pid)];
          const [own = 0, ...others] = await Promise.all(
            pids.map((pid) => cpuPercent(pid, { times: 1, seconds: SECONDS })),
          );
          const cost = (own - idle) / CHANNELS;
          const copy = others.reduce((sum, share) => sum + share, 0) / CHANNELS;
          return [
            atMost({
              what: `CPU of a bypassed channel of a file, times that of ffmpeg -re -c copy, ${CHANNELS} of each`,
              unit: 'times',
              digits: 1,
              values: [cost / copy],
              budget: BUDGET,
              reference: `${number(cost, 2)} % and ${number(copy, 2)} %`,
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
