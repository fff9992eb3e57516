import type { Random } from '../../soak/random.ts';

const item = (more: object) => ({ url: 'file://a/b.mp4', start: 0, duration: 2000, ...more });
/** Definitions of channels as the management API takes them, with everything in it. */
export const SCHEDULE = {
  stream: {
    name: 'tv',
    bypassTranscoder: true,
    videoTrack: true,
    audioTrack: true,
    audioMap: [{ name: 'en', language: 'eng', characteristics: 'public.accessibility' }],
    errorToleranceDurationMs: 700,
  },
  fallbackProgram: { items: [item({})] },
  programs: [
    { name: 'one', scheduled: '2099-01-01T00:00:00+01:00', repeat: true, items: [item({}), item({ duration: -1 })] },
    {
      name: 'two',
      scheduled: '2099-01-02T00:00:00.5Z',
      items: [item({ url: 'stream://default/app/live', forwardData: true }), item({ fallbackOnErr: false })],
    },
  ],
};

export const MULTIPLEX = {
  outputStream: { name: 'tv', bypassTranscoder: true },
  sourceStreams: [
    {
      name: 'one',
      url: 'stream://default/app/one',
      trackMap: [
        { sourceTrackName: 'v', newTrackName: 'v1', bitrateConf: 1_000_000, framerateConf: 29.97 },
        { sourceTrackName: 'a', newTrackName: 'a1', audioIndex: 0, language: 'de', publicName: 'Deutsch' },
      ],
    },
    { name: 'two', url: 'stream://default/other/two', trackMap: [{ sourceTrackName: 'v', newTrackName: 'v2' }] },
  ],
  playlists: [
    {
      name: 'all',
      fileName: 'all',
      options: { webrtcAutoAbr: false, hlsChunklistPathDepth: 1, enableTsPackaging: true },
      renditions: [
        { name: 'high', video: 'v1', audio: 'a1', audioIndexHint: 0 },
        { name: 'low', video: 'v2' },
      ],
    },
  ],
};

const ODD: readonly unknown[] = [
  null,
  true,
  'true',
  0,
  -1,
  1.5,
  '5',
  1e21,
  -1e308,
  '',
  ' ',
  '..',
  'a/b',
  'é\u0301',
  '\u0000',
  '\ud800',
  'x'.repeat(300),
  '${OriginStreamName}',
  'file://',
  'file:///a%2e%2e/b',
  'file://%zz',
  'FILE://a.mp4',
  'stream://default/app/tv',
  'stream://a',
  '2099-02-30T00:00:00Z',
  '2099-01-01T00:00:00',
  '0000-01-01T00:00:00Z',
  'v1',
  'one',
  [],
  {},
  [[]],
  { name: 'x' },
  { __proto__: null, toString: 1 },
];
const KEYS = ['name', 'url', 'items', 'programs', 'constructor', '__proto__', 'toString', 'scheduled', 'x'];

/** A copy in which some values are others, missing, doubled or added. */
export function mutated(random: Random, body: unknown): unknown {
  const copy: unknown = structuredClone(body);
  const places: { readonly of: Record<string, unknown>; readonly key: string }[] = [];
  const walk = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    for (const key of Object.keys(value)) {
      places.push({ of: value as Record<string, unknown>, key });
      walk((value as Record<string, unknown>)[key]);
    }
  };
  walk(copy);
  for (let left = random.below(4); left > 0; left--) {
    const { of, key } = random.pick(places);
    const way = random.below(10);
    if (way < 5) of[key] = random.pick(ODD);
    else if (way < 7 && Array.isArray(of)) of.push(structuredClone(of[Number(key)]));
    else if (way < 8) delete of[key];
    else
      Object.defineProperty(of, random.pick(KEYS), {
        value: random.pick(ODD),
        enumerable: true,
        configurable: true,
        writable: true,
      });
  }
  return copy;
}

/** Programs of a definition as they are given. */
export function programsGiven(spec: object): object {
  if (!('programs' in spec)) return {};
  const programs = spec.programs as readonly { readonly scheduled: number }[];
  return {
    programs: programs.map((program) => ({ ...program, scheduled: new Date(program.scheduled).toISOString() })),
  };
}
