import type { SchemaName } from './config-schema.ts';

const PLAYLIST = {
  fileName: 'abr',
  renditions: [
    { name: 'high', video: '720p', audio: 'aac' },
    { name: 'low', video: '360p', audio: 'aac' },
  ],
};

const PROFILE = {
  outputStreamName: '${OriginStreamName}',
  encodes: {
    videos: [
      { name: '720p', codec: 'h264', height: 720, bitrate: 2_500_000 },
      { name: '360p', codec: 'h264', height: 360, bitrate: 800_000 },
    ],
    audios: [{ name: 'aac', codec: 'aac', bitrate: 128_000 }],
  },
  playlists: [PLAYLIST],
};

const PROGRAMS = {
  fallbackProgram: { items: [{ url: 'file://pause.mp4' }] },
  programs: [
    {
      name: 'all day',
      scheduled: '2026-01-01T00:00:00Z',
      repeat: true,
      items: [{ url: 'file://show.mp4' }, { url: 'stream://default/app/mystream', duration: 60_000 }],
    },
  ],
};

/** Example body for each named schema. */
export const EXAMPLES: Readonly<Record<SchemaName, object>> = {
  Application: { name: 'app', type: 'live', providers: { rtmp: {} }, publishers: { llhls: {}, webrtc: {} } },
  ApplicationChange: { publishers: { llhls: { segmentDuration: 2 } } },
  DumpChoice: { outputStreamName: 'mystream', id: 'first' },
  DumpCreation: { outputStreamName: 'mystream', id: 'first', outputPath: '/srv/vod/${StreamName}_${ISO8601}' },
  HlsConclusion: { urgent: true },
  KeyRotation: {},
  MultiplexChannelCreation: {
    outputStream: { name: 'both' },
    sourceStreams: [
      {
        name: 'one',
        url: 'stream://default/app/mystream',
        trackMap: [{ sourceTrackName: 'bypass_video', newTrackName: 'v1' }],
      },
      {
        name: 'two',
        url: 'stream://default/app/other',
        trackMap: [{ sourceTrackName: 'bypass_video', newTrackName: 'v2' }],
      },
    ],
    playlists: [{ name: 'both', fileName: 'both', renditions: [{ video: 'v1' }, { video: 'v2' }] }],
  },
  OutputProfile: { name: 'ladder', ...PROFILE },
  OutputProfileChange: PROFILE,
  PullCreation: { name: 'camera', urls: ['rtsp://192.0.2.1:554/stream'], properties: { persistent: true } },
  PushCreation: {
    id: 'copy',
    stream: { name: 'mystream' },
    protocol: 'rtmp',
    url: 'rtmp://live.example.com/app',
    streamKey: 'key',
  },
  RecordCreation: { id: 'first', stream: { name: 'mystream' }, interval: 60_000 },
  ScheduledChannelChange: PROGRAMS,
  ScheduledChannelCreation: { stream: { name: 'tv' }, ...PROGRAMS },
  StandbyCreation: { file: '/srv/media/pause.mp4', maxDuration: 3600 },
  StreamSubtitles: {
    format: 'webvtt',
    data: [{ label: 'English', subtitles: [{ startOffset: 0, durationMs: 3000, text: 'Good evening' }] }],
  },
  StreamEvent: { eventFormat: 'id3v2', events: [{ frameType: 'TXXX', info: 'score', data: '2:1' }] },
  TaskChoice: { id: 'first' },
  TaskId: { id: 'first' },
  VirtualHost: { name: 'second', host: { names: ['live.example.com'] } },
};
