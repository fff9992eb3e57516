import { pino } from 'pino';
import type { Packet } from '../../src/core/packet.ts';
import type { OutputStream } from '../../src/core/output-stream.ts';
import type { SubtitleTrack } from '../../src/core/track.ts';
import { FaultLog } from '../../src/log/log.ts';
import { LLHLS } from '../../src/publishers/hls/ll/index.ts';
import { median } from '../support/load/statistics.ts';
import { openLlhls } from '../support/hls/llhls.ts';
import { cuePacket, subtitleTrack, videoPackets, videoTrack } from '../support/media/packets.ts';
import type { Measurement } from './measurement.ts';
import { costLine, ROUNDS } from './ratio.ts';

const SECONDS = 120;
const RENDITIONS = 10;
/** As of 2.5 Mbit/s. */
const FRAME_BYTES = 10_000;
const PART_SECONDS = 0.5;
/** Percent of a core that a rendition with a cue each second may take. */
const MOST = 0.1;

const VIDEO = videoTrack();
const SUBTITLES = Array.from({ length: RENDITIONS }, (_, index) =>
  subtitleTrack({ id: 768 + index, publicName: `Label ${index}` }),
);

/**
 * CPU of subtitles in LL-HLS, in this process: parts and segments, and each state of the playlist once, as all who watch get them. Viewers
 * beyond that cost what `llhls` measures.
 */
export const subtitles: Measurement = {
  name: 'subtitles',
  run: async () => {
    const undos: (() => unknown)[] = [];
    try {
      const { application, goLive } = await openLlhls({ teardown: (undo) => void undos.push(undo) });
      const { output } = goLive([VIDEO]);
      const log = pino({ level: 'silent' });
      const none = (): void => undefined;
      const options = { streamKey: 'key', next: undefined, onProgress: none, onStarted: none, log };
      const packaged = (tracks: readonly SubtitleTrack[]): number => {
        output.setTracks([VIDEO, ...tracks]);
        const of = LLHLS.package({ ...options, faults: new FaultLog(log), application });
        of.update(output);
        return percentOf(of, output, tracks);
      };
      // what is run first is slower
      packaged(SUBTITLES);
      const rounds = Array.from({ length: ROUNDS }, () => ({ own: packaged(SUBTITLES), without: packaged([]) }));
      const values = rounds.map(({ own }) => own);
      const references = rounds.map(({ without }) => without);
      const added = median(rounds.map(({ own, without }) => (own - without) / RENDITIONS));
      const what = `CPU of a video with ${RENDITIONS} subtitles, a cue each second`;
      const line = costLine({ what, unit: '%', digits: 2, values, references, of: 'the same without' });
      return [
        {
          ...line,
          budget: `<= ${MOST} % more for each`,
          met: added <= MOST,
          measured: `${line.measured}, ${added.toFixed(3)} % each`,
        },
      ];
    } finally {
      for (const undo of undos.reverse()) await undo();
    }
  },
};

/** CPU time of packaging, and of the playlists of subtitles at each part, in percent of the time of the media. */
function percentOf(
  of: ReturnType<typeof LLHLS.package>,
  output: OutputStream,
  tracks: readonly SubtitleTrack[],
): number {
  const media = videoPackets(VIDEO, { to: SECONDS, bytes: FRAME_BYTES });
  const cues = tracks.map((track): Packet[] =>
    Array.from({ length: SECONDS }, (_, at) => cuePacket(track, at * 1000, 'two lines of text\nas they are shown')),
  );
  const [playlist] = output.playlists;
  if (playlist === undefined) throw new Error('the stream has no playlist');
  const before = process.threadCpuUsage();
  let lists: string[] = [];
  let asked = PART_SECONDS;
  for (const packet of media) {
    const time = packet.pts / 90_000;
    if (Number.isInteger(time)) for (const each of cues) of.push(each[time] as Packet);
    of.push(packet);
    if (time < asked) continue;
    asked += PART_SECONDS;
    if (lists.length < tracks.length) {
      lists = [];
      of.master(playlist, output, (uri) => {
        if (uri.includes('_subtitle_')) lists.push(uri.split('?', 1)[0] as string);
        return uri;
      });
    }
    for (const name of lists) {
      const file = of.file(name);
      if (file?.kind === 'list') file.rendition.text('full', false);
    }
  }
  const { user, system } = process.threadCpuUsage(before);
  of.close();
  if (lists.length < tracks.length) throw new Error('the subtitles are not listed');
  return (user + system) / 1e4 / SECONDS;
}
