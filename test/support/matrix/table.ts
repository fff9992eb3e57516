import type { Codecs } from './clip.ts';
import { PUBLISHERS, type PublisherName } from './publishers.ts';

const ALL: readonly Codecs[] = ['H264+AAC', 'H264+OPUS', 'H265+AAC', 'VP8+OPUS'];
const TS: Row = { 'VP8+OPUS': 'has no place in it' };

type Row = Readonly<Partial<Record<Codecs, string>>>;

/** What a publisher does not publish, and why. */
const EXCUSES: Readonly<Record<PublisherName, Row>> = {
  'RTMP (ffmpeg)': {
    'H264+OPUS': 'ffmpeg 7 does not write it: RTMP (Enhanced)',
    'VP8+OPUS': 'ffmpeg 7 does not write it: RTMP (Enhanced)',
  },
  'RTMPS (ffmpeg)': { 'H264+OPUS': 'as RTMP', 'H265+AAC': 'as RTMP', 'VP8+OPUS': 'as RTMP' },
  'RTMP (Enhanced)': { 'H264+AAC': 'RTMP (ffmpeg)', 'H265+AAC': 'RTMP (ffmpeg)' },
  'SRT (ffmpeg)': TS,
  'SRT (srt-live-transmit)': TS,
  'SRT (GStreamer)': TS,
  'MPEG-TS over UDP (ffmpeg)': TS,
  'MPEG-TS over UDP (GStreamer)': TS,
  'MPEG-TS over RTP (ffmpeg)': TS,
  'WHIP (libdatachannel)': {
    'H264+AAC': 'WebRTC has no AAC',
    'H265+AAC': 'mediasoup does not route H265, and WebRTC has no AAC',
  },
  'RTSP (ffmpeg)': {},
  'RTSP over UDP (ffmpeg)': {},
  'RTSP (GStreamer)': {},
  'RTSP pull (GStreamer)': {},
  'OVT pull (Kiln)': {},
};

export interface Cell {
  readonly publisher: PublisherName;
  readonly codecs: Codecs;
}

/** Every pair that there is. */
export const TABLE: readonly Cell[] = (Object.keys(PUBLISHERS) as PublisherName[]).flatMap((publisher) =>
  ALL.filter((codecs) => !(codecs in EXCUSES[publisher])).map((codecs) => ({ publisher, codecs })),
);

/** What a transport adds does not depend on the codec: over one way of MPEG-TS all are tried, over the others one. */
const LEFT_TO_SOAK: readonly string[] = [
  'SRT (srt-live-transmit), H264+AAC',
  'SRT (srt-live-transmit), H265+AAC',
  'SRT (GStreamer), H264+OPUS',
  'SRT (GStreamer), H265+AAC',
  'MPEG-TS over UDP (ffmpeg), H264+AAC',
  'MPEG-TS over UDP (ffmpeg), H264+OPUS',
  'MPEG-TS over UDP (GStreamer), H264+AAC',
  'MPEG-TS over UDP (GStreamer), H265+AAC',
  'MPEG-TS over RTP (ffmpeg), H264+OPUS',
  'MPEG-TS over RTP (ffmpeg), H265+AAC',
  'RTSP (ffmpeg), H264+OPUS',
  'RTSP (ffmpeg), H265+AAC',
  'RTSP over UDP (ffmpeg), H264+AAC',
  'RTSP over UDP (ffmpeg), H265+AAC',
  'RTSP over UDP (ffmpeg), VP8+OPUS',
  'RTSP (GStreamer), H264+OPUS',
  'RTSP (GStreamer), VP8+OPUS',
  'RTSP pull (GStreamer), H264+AAC',
  'OVT pull (Kiln), H264+OPUS',
];

export function nameOf({ publisher, codecs }: Cell): string {
  return `${publisher}, ${codecs}`;
}

/** The pairs of every run of the tests; `npm run soak -- matrix` takes all. */
export const EVERYDAY: readonly Cell[] = TABLE.filter((cell) => !LEFT_TO_SOAK.includes(nameOf(cell)));
