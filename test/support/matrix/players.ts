import { spawn } from 'node:child_process';
import type { MediaTrack } from '../../../src/core/track.ts';
import type { Kiln } from '../server/kiln.ts';
import { playOvt } from '../ovt/ovt.ts';
import { until } from '../time/until.ts';
import { ViewerPeer } from '../webrtc/viewer-peer.ts';
import type { AudioName, Codecs, VideoName } from './clip.ts';
import { judge, type Judgement } from './judge.ts';
import { nutFile } from './nut-file.ts';
import { isWhole, recordingOf } from './whep-recording.ts';

export interface Watch {
  readonly kiln: Kiln;
  readonly stream: string;
  readonly video: VideoName;
  /** The sound as it was published: the other one is made of it. */
  readonly audio: AudioName;
}

/** Seconds that are watched. */
const SECONDS = 5;
/** What of them is decoded at least: a player begins with the next key frame, and what is live may not be there yet. */
export const LEAST_SECONDS = 4;

export interface Player {
  /** Why it does not take a codec, by codec. */
  readonly excuses: Readonly<Partial<Record<VideoName, string>>>;
  /** Watches for a while. @throws Error when what comes cannot be decoded */
  readonly watch: (what: Watch) => Promise<readonly Judgement[]>;
}

const NOT_IN = 'has no place in it';
const NOT_ANNOUNCED = 'is for players that announce it, which this one does not';

/** Every kind of player; each begins as soon as it is told. */
export const PLAYERS = {
  'WebRTC (libdatachannel)': { excuses: { H265: 'mediasoup does not route it' }, watch: watchWebrtc },
  'LL-HLS (ffmpeg)': { excuses: { VP8: NOT_IN }, watch: watchHls('', ({ audio }) => audio) },
  'HLS (ffmpeg)': { excuses: { VP8: NOT_IN }, watch: watchHls('ts:', () => 'AAC') },
  'SRT (ffmpeg)': { excuses: { VP8: NOT_IN }, watch: watchSrt },
  'SRT (srt-live-transmit)': { excuses: { VP8: NOT_IN }, watch: carrySrt },
  'RTMP (ffmpeg)': { excuses: { H265: NOT_ANNOUNCED, VP8: NOT_ANNOUNCED }, watch: watchRtmp },
  OVT: { excuses: {}, watch: watchOvt },
} as const satisfies Readonly<Record<string, Player>>;

export type PlayerName = keyof typeof PLAYERS;

export function playersOf(codecs: Codecs): PlayerName[] {
  const [video] = codecs.split('+') as [VideoName];
  return (Object.keys(PLAYERS) as PlayerName[]).filter((name) => !(video in PLAYERS[name].excuses));
}

function other(audio: AudioName): AudioName {
  return audio === 'AAC' ? 'OPUS' : 'AAC';
}

/** @param soundOf which sound is taken: players of HLS in MPEG-TS know no Opus */
function watchHls(prefix: string, soundOf: (what: Watch) => AudioName): Player['watch'] {
  return async (what) => {
    const url = what.kiln.httpUrl(`/app/${what.stream}/${prefix}${soundOf(what).toLowerCase()}.m3u8`);
    await until(`${url} is there`, async () => (await fetch(url)).status === 200);
    return [await judge({ from: url, seconds: SECONDS })];
  };
}

async function watchSrt({ kiln, stream, audio }: Watch): Promise<readonly Judgement[]> {
  return [
    await judge({
      from: kiln.srtPlayUrl(`${stream}/${audio.toLowerCase()}`, '&connect_timeout=30000&latency=3000000'),
      seconds: SECONDS,
    }),
  ];
}

async function watchRtmp({ kiln, stream }: Watch): Promise<readonly Judgement[]> {
  return [await judge({ from: kiln.rtmpUrl(`${stream}/aac`), seconds: SECONDS })];
}

async function carrySrt({ kiln, stream, audio }: Watch): Promise<readonly Judgement[]> {
  const url = kiln.srtPlayUrl(`${stream}/${other(audio).toLowerCase()}`, '&conntimeo=30000&latency=3000');
  const carrier = spawn('srt-live-transmit', ['-q', url, 'file://con'], { stdio: ['ignore', 'pipe', 'ignore'] });
  try {
    return [await judge({ from: carrier.stdout, seconds: SECONDS })];
  } finally {
    carrier.kill('SIGKILL');
  }
}

async function watchWebrtc({ kiln, stream, video }: Watch): Promise<readonly Judgement[]> {
  const viewer = new ViewerPeer({ video: video === 'VP8' ? 'VP8' : 'H264' });
  try {
    await viewer.play(kiln.httpUrl(`/app/${stream}?direction=whep`));
    await viewer.until(
      () => viewer.frames().length > SECONDS * 25 && viewer.sentAt() !== undefined && isWhole(viewer.packets.video),
    );
    return [await judge({ from: recordingOf(viewer, video === 'VP8' ? 'VP8' : 'H264') })];
  } finally {
    viewer.close();
  }
}

/** Both sounds of it. */
async function watchOvt({ kiln, stream }: Watch): Promise<readonly Judgement[]> {
  const { client, recorder } = await playOvt(kiln.ovtUrl(stream));
  await until(
    'media over OVT',
    () => recorder.packets.filter(({ track }) => track.type === 'video').length > SECONDS * 25,
  );
  client.close();
  const tracks =
    recorder.told[0]?.tracks.filter((track): track is MediaTrack => track.type === 'video' || track.type === 'audio') ??
    [];
  const packets = recorder.packets.filter(({ track }) => track.type === 'video');
  const first = packets.findIndex(({ key }) => key);
  if (first !== 0) throw new Error(`a key frame is picture ${first}`);
  const from = nutFile(tracks.map((track) => ({ track, frames: recorder.of(track.id) })));
  return Promise.all([0, 1].map((sound) => judge({ from, sound })));
}
