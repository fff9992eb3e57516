import type { Packet } from '../../../src/core/packet.ts';
import { until } from '../../support/time/until.ts';
import { seeded } from '../codecs/vectors.ts';
import { feed, openTranscoder, pictureFaults, soundFaults } from './rig.ts';
import { audioEncoding, lastSeconds, looped, pictureAndSound, Taken, type Clip } from './sources.ts';

/** At most so many seconds of media from one kill to the next. */
const LONGEST = 5;

/**
 * Encodes a source for as long as it takes to kill the child so many times, at moments that a seed decides.
 * @returns what is wrong with what came out, and what the transcoder told
 */
export async function killChildren(source: Clip, kills: number, seed: number) {
  const { input, transcoder, lines } = openTranscoder(source);
  const [video, aac] = pictureAndSound(source);
  const opus = new Taken(source.audio, audioEncoding({ codec: 'OPUS' }));
  const all = [video, aac, opus];
  const random = seeded(seed);
  const packets: Packet[] = [];
  let killed = 0;
  function* live() {
    for (const packet of looped(source, Infinity)) {
      if (killed >= kills) return;
      packets.push(packet);
      yield packet;
    }
  }
  try {
    transcoder.setJobs(all.map(({ task }) => task));
    const feeding = feed(input, live(), all);
    while (killed < kills) {
      const from = video.reached;
      const wait = random() * LONGEST;
      await until(
        'it goes on',
        () => killed < video.formats.length && video.reached > from + wait && transcoder.pids.length > 0,
        60_000,
      );
      for (const pid of transcoder.pids) process.kill(pid, 'SIGKILL');
      killed++;
    }
    await feeding;
    const end = lastSeconds(source, packets) - 1;
    await until('all is out', () => all.every(({ reached }) => reached > end), 60_000);
    const faults = [...pictureFaults(video, packets), ...soundFaults(aac), ...soundFaults(opus)];
    return { faults, video, lines, seconds: end };
  } finally {
    transcoder.close();
  }
}
