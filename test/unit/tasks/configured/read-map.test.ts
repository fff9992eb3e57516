import test from 'ava';
import type { Application } from '../../../../src/core/application.ts';
import { Registry } from '../../../../src/core/registry.ts';
import type { OutputStream } from '../../../../src/core/output-stream.ts';
import type { MapEntry, MapFormat } from '../../../../src/tasks/configured/map-format.ts';
import { readMap } from '../../../../src/tasks/configured/read-map.ts';
import type { PushSpec } from '../../../../src/pushing/spec.ts';
import { PUSH_MAP } from '../../../../src/pushing/stream-map.ts';
import type { RecordSpec } from '../../../../src/recording/spec.ts';
import { recordMap } from '../../../../src/recording/stream-map.ts';
import { addVhost, VIDEO } from '../../../support/server/live.ts';

const RECORDS = recordMap('/var/kiln');

function application(): Application {
  const registry = new Registry();
  const publishers = { file: { rootPath: '/data' }, push: {} } as unknown as Application['config']['publishers'];
  addVhost(registry, { publishers });
  return registry.vhost('default').application('app');
}

const APP = application();

function outputOf(source: string, name = source): OutputStream {
  const input = APP.publish(source, { type: 'Rtmp', kind: 'rtmp' }, { replace: true, maxConnections: 0 });
  input.setTracks([VIDEO]);
  return APP.addOutput(input, name);
}

const read = <E extends MapEntry>(format: MapFormat<E>, ...entries: string[]) =>
  readMap(
    format,
    `<?xml version="1.0"?>\n<${format.root}>\n${entries.map((entry) => `<${format.item}>${entry}</${format.item}>`).join('\n')}\n</${format.root}>`,
    'map.xml',
    { KEY: 'a secret key' },
  );

/** The spec of the first entry for an output stream. */
function specOf<E extends MapEntry, S>(format: MapFormat<E>, entry: string, output: OutputStream): S | undefined {
  const { entries, findings } = read(format, `<Enable>true</Enable>${entry}`);
  if (entries[0] === undefined) throw new Error(findings.join());
  return entries[0].task(output, APP)?.spec as S | undefined;
}

const recorded = (entry: string, output: OutputStream) => specOf<MapEntry, RecordSpec>(RECORDS as never, entry, output);
const pushed = (entry: string, output: OutputStream) => specOf<MapEntry, PushSpec>(PUSH_MAP as never, entry, output);

test('a recording with everything', (t) => {
  const spec = recorded(
    '<StreamName>*_o</StreamName><VariantNames> video:1, ,audio </VariantNames>' +
      '<FilePath>/${VirtualHost}/${Stream}_${Sequence}.mp4</FilePath><InfoPath>/data/info.xml</InfoPath>' +
      '<SegmentInterval>60000</SegmentInterval><SegmentRule>Continuity</SegmentRule><Metadata>any, thing</Metadata>',
    outputOf('live', 'live_o'),
  );
  t.like(spec, {
    stream: { name: 'live_o', trackIds: [], variantNames: ['video:1', 'audio'] },
    filePath: '${VirtualHost}/${Stream}_${Sequence}.mp4',
    infoPath: '/data/info.xml',
    interval: 60_000,
    segmentationRule: 'continuity',
    metadata: 'any, thing',
  });
});

test('empty elements are as good as none', (t) => {
  const spec = recorded(
    '<StreamName>*</StreamName><VariantNames></VariantNames><FilePath/><SegmentInterval></SegmentInterval>' +
      '<SegmentSchedule>0 0 *</SegmentSchedule><SegmentRule/><Metadata/>',
    outputOf('live'),
  );
  t.is(spec?.schedule, '0 0 *');
  t.deepEqual(
    [spec?.filePath, spec?.infoPath, spec?.interval, spec?.metadata, spec?.segmentationRule],
    [undefined, undefined, undefined, undefined, 'discontinuity'],
  );
});

for (const [pattern, source, name, isMeant] of [
  ['live*', 'live', 'live_o', true],
  ['LIVE?', 'x', 'live1', true],
  ['live', 'x', 'live1', false],
  ['${SourceStream}_h264', 'live', 'live_h264', true],
  ['${SourceStream}_h264', 'live', 'other_h264', false],
  ['${SourceStream}', '$&', '$&', true],
] as const) {
  test(`${pattern} ${isMeant ? 'names' : 'does not name'} the output stream ${name} of ${source}`, (t) => {
    t.is(recorded(`<StreamName>${pattern}</StreamName>`, outputOf(source, name)) !== undefined, isMeant);
  });
}

for (const [what, entry, destination] of [
  [
    'a key and macros',
    '<Protocol>rtmp</Protocol><Url>rtmp://host:1935/${Application}</Url><StreamKey>${SourceStream}-${Stream}</StreamKey>',
    ['rtmp', 'rtmp://host:1935/app', 'a&b-a&b_o'],
  ],
  [
    'the key at the end of the URL',
    '<Protocol>RTMP</Protocol><Url>rtmp://host/live/${SourceStream}?token=1/2</Url><StreamKey></StreamKey>',
    ['rtmp', 'rtmp://host/live', 'a&b?token=1/2'],
  ],
  [
    'a name in a query',
    '<Protocol>srt</Protocol><Url>srt://host:9999?streamid=${Stream}</Url>',
    ['srt', 'srt://host:9999?streamid=a%26b_o', ''],
  ],
  [
    'a key of the environment',
    '<Protocol>rtmps</Protocol>'.replace('rtmps', 'rtmp') +
      '<Url>rtmps://host/app</Url><StreamKey>${env:KEY}</StreamKey>',
    ['rtmp', 'rtmps://host/app', 'a secret key'],
  ],
] as const) {
  test(`a stream map may hold a push with ${what}`, (t) => {
    const spec = pushed(`<StreamName>*</StreamName>${entry}`, outputOf('a&b', 'a&b_o'));
    t.deepEqual([spec?.protocol, spec?.url, spec?.streamKey], [...destination]);
  });
}

test('each task has an id of its own, of six letters or digits', (t) => {
  const { entries } = read(RECORDS, '<Enable>true</Enable><StreamName>*</StreamName>');
  const output = outputOf('live');
  const ids = Array.from({ length: 50 }, () => entries[0]?.task(output, APP)?.id ?? '');
  t.is(new Set(ids).size, 50);
  for (const id of ids) t.regex(id, /^[A-Za-z0-9]{6}$/);
});

const ON = '<Enable>true</Enable><StreamName>*</StreamName>';

for (const [what, format, entry, reason] of [
  ['no stream', RECORDS, '<Enable>true</Enable>', /Record\/StreamName: is missing/],
  ['no Enable', RECORDS, '<StreamName>*</StreamName>', /Record\/Enable: is missing/],
  [
    'an odd Enable',
    RECORDS,
    '<Enable>maybe</Enable><StreamName>*</StreamName>',
    /Record\/Enable: "maybe" is not true or false/,
  ],
  ['an interval in words', RECORDS, `${ON}<SegmentInterval>1 min</SegmentInterval>`, /SegmentInterval: "1 min" is not/],
  [
    'interval and schedule',
    RECORDS,
    `${ON}<SegmentInterval>1</SegmentInterval><SegmentSchedule>* * *</SegmentSchedule>`,
    /at the same time/,
  ],
  ['an odd schedule', RECORDS, `${ON}<SegmentSchedule>daily</SegmentSchedule>`, /Invalid \[schedule\]/],
  ['an odd rule', RECORDS, `${ON}<SegmentRule>sometimes</SegmentRule>`, /must be one of discontinuity, continuity/],
  ['a path out of the root', RECORDS, `${ON}<FilePath>../../etc/x.ts</FilePath>`, /leads out of/],
  ['an element twice', RECORDS, `${ON}<StreamName>b</StreamName>`, /Record\/StreamName is given twice/],
  [
    'a macro in StreamName',
    RECORDS,
    '<Enable>true</Enable><StreamName>${Stream}</StreamName>',
    /\$\{Stream\} is none of/,
  ],
  ['no URL', PUSH_MAP, `${ON}<Protocol>srt</Protocol>`, /Push\/Url: is missing/],
  [
    'an unknown protocol',
    PUSH_MAP,
    `${ON}<Protocol>ftp</Protocol><Url>ftp://h/x</Url>`,
    /Could not find protocol 'ftp'/,
  ],
  ['an odd URL', PUSH_MAP, `${ON}<Protocol>srt</Protocol><Url>here</Url>`, /Could not parse url/],
  [
    'no stream key',
    PUSH_MAP,
    `${ON}<Protocol>rtmp</Protocol><Url>rtmp://h/app</Url>`,
    /no required parameter \[ streamKey\]/,
  ],
  [
    'an unknown macro',
    PUSH_MAP,
    `${ON}<Protocol>srt</Protocol><Url>srt://h:1?streamid=\${Name}</Url>`,
    /\$\{Name\} is none of the macros \$\{Application\}/,
  ],
  [
    'a variable that is not set',
    PUSH_MAP,
    `${ON}<Protocol>rtmp</Protocol><Url>rtmp://h/a</Url><StreamKey>\${env:NONE}</StreamKey>`,
    /the environment has no NONE/,
  ],
] as const) {
  test(`an entry with ${what} is named with its line and the reason, and the others are used`, (t) => {
    const good = format === RECORDS ? ON : `${ON}<Protocol>srt</Protocol><Url>srt://host:1</Url>`;
    const { entries, findings } = read(format as MapFormat<never>, entry, good);
    t.is(entries.length, 1);
    t.is(entries[0]?.place, 'map.xml:4');
    t.is(findings.length, 1);
    t.regex(findings[0] ?? '', /^map\.xml:3: the entry is not used: /);
    t.regex(findings[0] ?? '', reason);
  });
}

test('entries that are off are left out whatever is in them, doubles are refused, and what has no effect is named', (t) => {
  const { entries, findings } = read(
    RECORDS,
    '<Enable>false</Enable><SegmentInterval>what</SegmentInterval>',
    `${ON}<Metadata>1</Metadata>`,
    `${ON}<Metadata>1</Metadata><FilePath></FilePath>`,
    `${ON}<Metadata>2</Metadata><TimestampMode>ZeroBased</TimestampMode>`,
  );
  t.deepEqual(
    entries.map(({ place }) => place),
    ['map.xml:4', 'map.xml:6'],
  );
  t.deepEqual(findings, [
    'map.xml:5: the entry is not used: it is the same as the one at map.xml:4',
    'map.xml:6: Record: unknown element TimestampMode at line 6 has no effect',
  ]);
});

test('the key of an entry goes by what it says, not by where or how', (t) => {
  const [one, two, other] = [
    `${ON}<Metadata>1</Metadata>`,
    `<StreamName> * </StreamName><Enable>TRUE</Enable><Metadata>1</Metadata><InfoPath/>`,
    `${ON}<Metadata>2</Metadata>`,
  ].map((entry) => read(RECORDS, '<Enable>false</Enable>', entry).entries[0]?.key);
  t.is(one, two);
  t.not(one, other);
});

for (const [what, text, reason] of [
  ['broken', '<RecordInfo>\n<Record>\n</RecordInfo>', /map\.xml:\d: /],
  ['of pushes', '<PushInfo/>', /the root element must be RecordInfo, not PushInfo/],
  ['with entities', '<!DOCTYPE a [<!ENTITY b "c">]><RecordInfo/>', /a document type is not allowed/],
  ['empty', '', /./],
  ['too long', `<RecordInfo>${'<Record/>'.repeat(1001)}</RecordInfo>`, /more than 1000 entries/],
] as const) {
  test(`a file that is ${what} is refused`, (t) => {
    t.throws(() => readMap(RECORDS, text, 'map.xml', {}), { message: reason });
  });
}
