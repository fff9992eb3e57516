import test from 'ava';
import { baseUrl, controlUrl } from '../../../../src/protocols/rtsp/control.ts';
import { readDescription } from '../../../../src/protocols/rtsp/description.ts';
import { RtspError } from '../../../../src/protocols/rtsp/error.ts';
import { parseRtpInfo, startsOf } from '../../../../src/protocols/rtsp/rtp-info.ts';
import { parseTransport } from '../../../../src/protocols/rtsp/transport.ts';
import { seeded } from '../../codecs/vectors.ts';

test('a camera with a byte order mark, bare line feeds, blanks, metadata and a back channel', (t) => {
  const { control, media } = readDescription(
    `\uFEFF${[
      'v=0',
      'o=- 0 0 IN IP4 0.0.0.0',
      's= ',
      'c=IN IP4 0.0.0.0',
      'a=control:rtsp://10.0.0.9/live/?x=1',
      't=0 0',
      'm=video 0 RTP/AVP 96 ',
      'b=AS:4096',
      'a=rtpmap:96  H264/90000 ',
      'a=fmtp:96  packetization-mode=1; profile-level-id=640028;sprop-parameter-sets=Z2QAKA==,aO48gA== ',
      'a=control:trackID=1',
      'a=recvonly',
      'm=video 0 RTP/AVP 26',
      'a=control:jpeg',
      'm=audio 0 RTP/AVP 0 97',
      'a=control:2',
      'a=recvonly',
      'm=audio 0 RTP/AVP 8',
      'a=control:back',
      'a=sendonly',
      'm=application 0 RTP/AVP 107',
      'a=rtpmap:107 vnd.onvif.metadata/90000',
      'a=control:3',
      'm=audio 0 RTP/AVP 98',
      'a=rtpmap:98 mpeg4-generic/16000/1',
      'a=inactive',
      'm=audio 0 RTP/AVP 14 ',
      'a=rtpmap:14 MPA/44100/2',
      'a=recvonly',
    ].join('\n')}`,
  );
  t.is(control, 'rtsp://10.0.0.9/live/?x=1');
  t.deepEqual(media, [
    {
      kind: 'video',
      payloadType: 96,
      channels: 0,
      others: [],
      bitrate: 4_096_000,
      control: 'trackID=1',
      format: {
        encoding: 'H264',
        clockRate: 90_000,
        parameters: {
          'packetization-mode': '1',
          'profile-level-id': '640028',
          'sprop-parameter-sets': 'Z2QAKA==,aO48gA==',
        },
      },
    },
    {
      kind: 'audio',
      payloadType: 0,
      channels: 1,
      others: [],
      bitrate: 0,
      control: '2',
      format: { encoding: 'PCMU', clockRate: 8000, parameters: {} },
    },
    {
      kind: 'audio',
      payloadType: 14,
      channels: 2,
      others: [],
      bitrate: 0,
      control: undefined,
      format: { encoding: 'MPA', clockRate: 90_000, parameters: {} },
    },
  ]);
});

test('all supported formats of an SDP section are taken, in their order; missing clocks are assumed', (t) => {
  const { media } = readDescription(
    'v=0\r\nm=video 0 RTP/AVP 100 101 102\r\na=rtpmap:100 JPEG/90000\r\na=rtpmap:101 H265\r\na=rtpmap:102 H264/90000\r\n',
  );
  t.like(media[0], { payloadType: 101, format: { encoding: 'H265', clockRate: 90_000 } });
  t.like(media[0]?.others, { length: 1, 0: { payloadType: 102, format: { encoding: 'H264', clockRate: 90_000 } } });
});

/** The first format of a section of one line each. */
function described(...lines: readonly string[]) {
  return readDescription(['v=0', ...lines, ''].join('\r\n')).media[0];
}

test('lines of another number are those of the only format without', (t) => {
  const config = { config: '1190' };
  const aac = ['m=audio 0 RTP/AVP 104', 'a=rtpmap:104 mpeg4-generic/48000/2'];
  t.deepEqual(described(...aac, 'a=fmtp:97 config=1190')?.format.parameters, config);
  t.deepEqual(described(...aac, 'a=fmtp:104 x=1', 'a=fmtp:97 config=1190')?.format.parameters, { x: '1' });
  // two strays, and one that is of another format
  t.deepEqual(described(...aac, 'a=fmtp:97 config=1190', 'a=fmtp:98 config=1210')?.format.parameters, {});
  t.deepEqual(described(...aac, 'a=rtpmap:97 opus/48000/2', 'a=fmtp:97 config=1190')?.format.parameters, {});
  const two = ['m=audio 0 RTP/AVP 104 105', 'a=rtpmap:104 mpeg4-generic/48000/2', 'a=rtpmap:105 mpeg4-generic/16000'];
  t.deepEqual(described(...two, 'a=fmtp:97 config=1190')?.format.parameters, {});
  t.deepEqual(described(...two, 'a=fmtp:105 x=1', 'a=fmtp:97 config=1190')?.format.parameters, config);
  // one that needs none is none without
  t.deepEqual(
    described('m=audio 0 RTP/AVP 104 8', aac[1] as string, 'a=fmtp:97 config=1190')?.format.parameters,
    config,
  );
  t.like(described('m=video 0 RTP/AVP 96', 'a=rtpmap:97 H264/90000', 'a=fmtp:97 packetization-mode=1'), {
    payloadType: 96,
    format: { encoding: 'H264', clockRate: 90_000, parameters: { 'packetization-mode': '1' } },
  });
  t.is(described('m=audio 0 RTP/AVP 0', 'a=rtpmap:97 opus/48000/2')?.format.encoding, 'PCMU');
});

test('G.711 has the rate and the channels of its line, and the usual ones without', (t) => {
  const g711 = (line: string) => {
    const read = described('m=audio 0 RTP/AVP 98', `a=rtpmap:98 ${line}`);
    return [read?.format.encoding, read?.format.clockRate, read?.channels];
  };
  t.deepEqual(g711('PCMU/16000'), ['PCMU', 16_000, 0]);
  t.deepEqual(g711('PCMU/16000/1'), ['PCMU', 16_000, 1]);
  t.deepEqual(g711('pcma/8000/2'), ['PCMA', 8000, 2]);
  t.deepEqual(g711('PCMA'), ['PCMA', 8000, 0]);
});

test('tracks of which no codec is taken are named', (t) => {
  const { media, ignored } = readDescription(
    [
      'v=0',
      'm=video 0 RTP/AVP 96',
      'a=rtpmap:96 H264/90000',
      'm=audio 0 RTP/AVP 98 99',
      'a=rtpmap:98 L16/44100/2',
      'a=rtpmap:99 G726-32/8000',
      'm=audio 0 RTP/AVP 5',
      'm=application 0 RTP/AVP 107',
      'a=rtpmap:107 vnd.onvif.metadata/90000',
      'm=audio 0 RTP/AVP 0',
      'a=sendonly',
      '',
    ].join('\r\n'),
  );
  t.is(media.length, 1);
  t.deepEqual(ignored, ['L16, G726-32', 'audio of payload type 5']);
});

test('an SDP without a supported track is rejected, whatever it is', (t) => {
  for (const text of [
    '',
    'hello',
    'v=0\r\nm=video 0 RTP/AVP 96\r\n',
    'm=audio 0 RTP/SAVP 0\r\n',
    'm=application 0 RTP/AVP 0',
    'm=video',
    'a=rtpmap:96 H264/90000',
  ]) {
    t.throws(() => readDescription(text), { instanceOf: RtspError }, text);
  }
  const random = seeded(31);
  const lines = [
    'm=video 0 RTP/AVP 96',
    'a=rtpmap:96 H264/90000',
    'a=fmtp:96 a=b;c',
    'a=control:*',
    'b=AS:x',
    'm=audio 0 RTP/AVP 0',
    'a=sendonly',
    'x',
    'a=',
    '=',
    'm=',
  ];
  for (let i = 0; i < 500; i++) {
    const text = Array.from({ length: 12 }, () =>
      (lines[Math.floor(random() * lines.length)] as string).slice(0, 1 + Math.floor(random() * 40)),
    ).join('\n');
    try {
      t.true(readDescription(text).media.length > 0);
    } catch (error) {
      t.true(error instanceof RtspError, String(error));
    }
  }
});

test('lines and formats beyond the limits of an SDP are ignored', (t) => {
  const start = 'v=0\r\nm=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n';
  t.is(readDescription(`${start}${'a=x\r\n'.repeat(900)}`).media.length, 1);
  t.throws(() => readDescription(`${start}${'a=x\r\n'.repeat(2000)}`), { instanceOf: RtspError });
  const types = (count: number): string => '99 '.repeat(count);
  t.is(readDescription(start.replace(' 96\r', ` ${types(100)}96\r`)).media.length, 1);
  t.throws(() => readDescription(start.replace(' 96\r', ` ${types(1000)}96\r`)), { instanceOf: RtspError });
});

test('URLs of tracks: absolute, relative, with a query, none', (t) => {
  for (const [base, control, expected] of [
    ['rtsp://cam/live/', 'trackID=1', 'rtsp://cam/live/trackID=1'],
    ['rtsp://cam/live', 'trackID=1', 'rtsp://cam/live/trackID=1'],
    ['rtsp://cam/live?x=1', 'trackID=1', 'rtsp://cam/live?x=1/trackID=1'],
    ['rtsp://cam/live', 'rtsp://10.0.0.1/t', 'rtsp://10.0.0.1/t'],
    ['rtsp://cam/live', '*', 'rtsp://cam/live'],
    ['rtsp://cam/live', undefined, 'rtsp://cam/live'],
    ['rtsp://cam/live', '', 'rtsp://cam/live'],
    ['rtsp://cam/live/a?x', '/other', 'rtsp://cam/other'],
    ['rtsp://cam/live', '?ctype=video', 'rtsp://cam/live?ctype=video'],
  ] as const)
    t.is(controlUrl(base, control), expected);
  t.is(baseUrl('rtsp://a/', 'rtsp://b/', 'rtsp://c/'), 'rtsp://b/');
  t.is(baseUrl('rtsp://a/', undefined, 'rtsp://c/'), 'rtsp://c/');
  t.is(baseUrl('rtsp://a/', '/relative', undefined), 'rtsp://a/');
});

test('the Transport header of an RTSP server is read', (t) => {
  t.deepEqual(parseTransport('RTP/AVP/TCP;unicast;interleaved=2-3;ssrc=1'), {
    isTcp: true,
    isElsewhere: false,
    channels: [2, 3],
    source: undefined,
    serverPorts: undefined,
  });
  t.deepEqual(parseTransport('RTP/AVP;unicast; client_port=5000-5001 ; source=10.0.0.1; server_port=6000-6001'), {
    isTcp: false,
    isElsewhere: true,
    channels: undefined,
    source: '10.0.0.1',
    serverPorts: [6000, 6001],
  });
  t.deepEqual(parseTransport('RTP/AVP/UDP;server_port=6000'), {
    isTcp: false,
    isElsewhere: true,
    channels: undefined,
    source: undefined,
    serverPorts: [6000, 6001],
  });
  for (const text of ['', ';interleaved=0-1', 'RTP/AVP;unicast;interleaved=0-1', 'RTP/AVP/TCP'])
    t.false(parseTransport(text).isElsewhere, text);
  for (const text of ['', ';;=', 'RTP/AVP/TCP;interleaved=255-256', 'RTP/AVP/TCP;interleaved=a-b'])
    t.is(parseTransport(text).channels, undefined);
});

test('RTP start points of tracks are found by URL or by place', (t) => {
  const starts = parseRtpInfo(
    'url=rtsp://cam/live/t1;seq=5;rtptime=100, url="trackID=2";rtptime=4294967295;seq=1,url=rtsp://cam/x;seq=3',
  );
  t.deepEqual(
    starts.map(({ rtpTime }) => rtpTime),
    [100, 4_294_967_295, undefined],
  );
  t.deepEqual(startsOf(['rtsp://cam/live/trackID=2', 'rtsp://cam/live/t1'], starts), [4_294_967_295, 100]);
  t.deepEqual(startsOf(['rtsp://cam/other'], parseRtpInfo('url=rtsp://10.0.0.1/a;rtptime=7')), [7]);
  t.deepEqual(startsOf(['a'], parseRtpInfo('nonsense;rtptime=99999999999')), [undefined]);
});
