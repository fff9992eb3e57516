import test from 'ava';
import { ConfigError } from '../../../../src/config/config-error.ts';
import { MULTIPLEX_FILES, SCHEDULE_FILES } from '../../../../src/channels/files/kinds.ts';
import { ChannelFileError, readChannelFile, type ChannelFileForm } from '../../../../src/channels/files/read-file.ts';
import { writeSchedule } from '../../../../src/channels/files/write-schedule.ts';
import { readMultiplexSpec } from '../../../../src/channels/multiplex/spec.ts';
import { readScheduleSpec, type ScheduleSpec } from '../../../../src/channels/scheduled/spec.ts';
import { seeded } from '../../codecs/vectors.ts';
import { MULTIPLEX, SCHEDULE } from './samples.ts';

const SHORT =
  '<Schedule><Stream/><Program scheduled="2999-01-01T00:00:00Z"><Item url="file://a"/></Program></Schedule>';

function read<T>(form: ChannelFileForm<T>, text: string): T {
  return readChannelFile(form, text, 'file', 'named-by-file').value;
}

test('a file of a schedule is read', (t) => {
  const { value, warnings } = readChannelFile(SCHEDULE_FILES.form, SCHEDULE, 'tv1.sch', 'other');
  const item = { start: 0, duration: -1, fallbackOnErr: true, forwardData: false };
  t.deepEqual(warnings, []);
  t.deepEqual(value, {
    name: 'tv1',
    spec: {
      stream: {
        bypassTranscoder: false,
        videoTrack: true,
        audioTrack: true,
        audioMap: [
          { name: 'English', language: 'en', characteristics: 'public.accessibility.describes-video' },
          { name: 'Korean', language: 'kr' },
        ],
        errorToleranceDurationMs: 1000,
      },
      fallbackProgram: {
        items: [
          { ...item, url: 'file://hevc.mov' },
          { ...item, url: 'file://avc.mov', duration: 60_000 },
        ],
      },
      programs: [
        {
          name: '1',
          scheduled: Date.UTC(2998, 8, 27, 4, 21, 15, 123),
          repeat: false,
          items: [{ ...item, url: 'stream://default/app/stream1', duration: 60_000 }],
        },
        {
          name: '2',
          scheduled: Date.UTC(2999, 2, 14, 6, 10),
          repeat: true,
          items: [
            { ...item, url: 'file://sample.mp4', duration: 60_000 },
            {
              url: 'stream://default/app/stream1',
              start: 0,
              duration: 1000,
              fallbackOnErr: false,
              forwardData: true,
            },
            { ...item, url: 'file://sub/a%20b.mp4', start: 60_000 },
          ],
        },
      ],
    },
  });
});

test('a multiplex channel is read', (t) => {
  const { value, warnings } = readChannelFile(MULTIPLEX_FILES.form, MULTIPLEX, 'stream.mux', 'other');
  t.deepEqual(warnings, []);
  t.is(value.name, 'stream');
  t.true(value.spec.bypassTranscoder);
  t.deepEqual(value.spec.sourceStreams[0]?.trackMap, [
    {
      sourceTrackName: 'bypass_video',
      newTrackName: 'tv1_video',
      bitrateConf: 5_000_000,
      framerateConf: 29.97,
      audioIndex: -1,
    },
    {
      sourceTrackName: 'bypass_audio',
      newTrackName: 'tv1_audio',
      bitrateConf: 0,
      framerateConf: 0,
      audioIndex: 1,
      publicName: 'Main',
      language: 'en',
      characteristics: 'public.main',
    },
  ]);
  t.is(value.spec.sourceStreams[1]?.url, 'stream://default/app/tv2');
  t.like(value.spec.playlists, [
    {
      fileName: 'abr',
      options: { webrtcAutoAbr: true, hlsChunklistPathDepth: 0, enableTsPackaging: true },
      renditions: [
        { name: '1080p', video: 'tv1_video', audio: 'tv1_audio' },
        { name: '720p', video: 'tv2_video', audio: 'tv1_audio' },
      ],
    },
  ]);
});

test('a stream without a name has that of its file', (t) => {
  t.is(read(SCHEDULE_FILES.form, SHORT).name, 'named-by-file');
});

test('an attribute of a channel file without effect is warned of', (t) => {
  const { warnings } = readChannelFile(SCHEDULE_FILES.form, SHORT.replace('<Item', '<Item loop="1"'), 'tv.sch', 'tv');
  t.is(warnings.length, 1);
  t.regex(warnings[0] ?? '', /^Schedule\/Program\[1\]\/Item\[1\].*Loop/);
});

test('each wrong value of a channel file is named by its element', (t) => {
  const cases: readonly (readonly [string, RegExp])[] = [
    ['<Multiplex/>', /^file: the root element is Multiplex, not Schedule$/],
    ['<Schedule/>', /^file: Schedule\/Stream: is missing$/],
    [SHORT.replace('file://a', 'a.mp4'), /^file: Schedule\/Program\[1\]\/Item\[1\]\/Url: "a.mp4" is not file:/],
    [SHORT.replace('2999', 'soon'), /^file: Schedule\/Program\[1\]\/Scheduled: "soon-01-01T00:00:00Z" is not a date/],
    [SHORT.replace('<Item', '<Item duration="long"'), /Item\[1\]\/Duration: "long" is not an integer/],
    [SHORT.replace('<Item', '<Item url="file://b"'), /^file:1: Attribute 'url' is repeated/],
    [SHORT.replace('<Stream/>', '<Stream/><Stream/>'), /^file: Schedule\/Stream is given twice$/],
    [SHORT.replace('/>', ''), /^file:1: /],
    [`<!DOCTYPE s [<!ENTITY a "b">]>${SHORT}`, /^file: a document type is not allowed$/],
    ['', /^file/],
    ['{"stream": {}}', /^file/],
  ];
  for (const [text, wanted] of cases) {
    const error = t.throws(() => read(SCHEDULE_FILES.form, text), undefined, text);
    t.true(error instanceof ConfigError || error instanceof ChannelFileError);
    t.regex(error?.message ?? '', wanted);
  }
});

test('a channel file that was written is read as the same channel', (t) => {
  const { name, spec } = read(SCHEDULE_FILES.form, SCHEDULE);
  t.deepEqual(read(SCHEDULE_FILES.form, writeSchedule(name, spec)), { name, spec });
  const strange = '<a href="b">\'&amp; ]]> \t\n x';
  const odd: ScheduleSpec = {
    ...spec,
    stream: { ...spec.stream, audioMap: [{ name: strange }] },
    programs: [{ ...spec.programs[0]!, name: strange }],
  };
  t.deepEqual(read(SCHEDULE_FILES.form, writeSchedule('a&b', odd)), { name: 'a&b', spec: odd });
});

test('any text is read or refused with a reason', (t) => {
  const random = seeded(17);
  const below = (limit: number): number => Math.floor(random() * limit);
  const words = ['<', '>', '/', '"', '&amp;', '&x;', '&#0;', '<Item', '</Item>', '-1', '1e9', ' ', '\0', '<!--', ']]>'];
  let whole = 0;
  for (let round = 0; round < 10_000; round++) {
    const [form, sample] =
      round % 2 === 0 ? ([SCHEDULE_FILES.form, SCHEDULE] as const) : ([MULTIPLEX_FILES.form, MULTIPLEX] as const);
    let text = sample as string;
    for (let change = below(3); change >= 0; change--) {
      const at = below(text.length);
      const length = below(4) === 0 ? below(200) : below(6);
      const other = below(3) === 0 ? text.slice(below(text.length)).slice(0, below(100)) : words[below(words.length)];
      text = text.slice(0, at) + (below(3) === 0 ? '' : other) + text.slice(at + length);
    }
    try {
      const { spec } = read<{ spec: unknown }>(form, text);
      t.truthy(form === SCHEDULE_FILES.form ? readScheduleSpec(spec) : readMultiplexSpec(spec), text);
      whole++;
    } catch (error) {
      if (!(error instanceof ConfigError) && !(error instanceof ChannelFileError)) throw error;
      if (!error.message.startsWith('file')) t.fail(error.message);
    }
  }
  t.true(whole > 500 && whole < 9500, String(whole));
});
