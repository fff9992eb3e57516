import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import test from 'ava';
import { Program, patternArguments, publishPattern } from '../support/media/ffmpeg.ts';
import { Teardown } from '../support/programs/teardown.ts';
import { freePair, freePorts } from '../support/network/ports.ts';
import { CertificateFolder, issue } from '../support/network/x509.ts';
import { shared } from '../support/runner/shared.ts';
import { Kiln } from '../support/server/kiln.ts';
import { PATIENCE_MS, until } from '../support/time/until.ts';

const run = promisify(execFile);
const PICTURE = { size: '160x90', rate: 15, gop: 30, bitrate: '200k' };
const USERS = '<Users><User><Name>anna</Name><Password>s3:cret</Password></User></Users>';

/** An application whose output streams have the audio of the source as it is. */
const BYPASS =
  '<Application><Name>bypass</Name><Type>live</Type><OutputProfiles><OutputProfile><Name>bypass</Name>' +
  '<OutputStreamName>${OriginStreamName}</OutputStreamName><Encodes><Audio><Name>sound</Name><Bypass>true</Bypass></Audio></Encodes>' +
  '</OutputProfile></OutputProfiles><Providers><RTSP/></Providers><Publishers><RTSP/></Publishers></Application>';

const undo = new Teardown();
test.after.always(() => undo.run());
const [secured = 0] = freePorts(1);
const tls = new CertificateFolder(undo).write('kiln', issue('localhost'));

/** A server with a stream `talk` in an application for all, and one in an application for users. */
const server = shared(async () => {
  const udp = freePair();
  const kiln = await Kiln.start({
    rtspIn: true,
    rtsp: `<TLSPort>${secured}</TLSPort><UDPPort>${udp}-${udp + 1}</UDPPort>`,
    tls,
    hls: '',
    applications: `<Application><Name>closed</Name><Type>live</Type><Providers><RTMP/><RTSP/></Providers><Publishers><RTSP/></Publishers>${USERS}</Application>${BYPASS}`,
  });
  undo.teardown(() => kiln.stop());
  for (const url of [kiln.rtmpUrl('talk'), kiln.rtmpUrl('talk').replace('/app/', '/closed/')]) {
    const program = publishPattern(url, PICTURE);
    undo.teardown(() => program.stop());
  }
  await kiln.liveStream('talk');
  await until('the other one is live', async () => {
    const { body } = await kiln.api<string[]>('/v1/vhosts/default/apps/closed/streams');
    return body.response.includes('talk');
  });
  return kiln;
});

interface Probe {
  readonly streams: readonly { readonly codec_name: string; readonly width?: number; readonly sample_rate?: string }[];
  readonly packets: readonly {
    readonly codec_type: string;
    readonly flags: string;
    readonly pts: number;
    readonly size: string;
  }[];
}

/** What ffprobe makes of a second of a stream. */
async function probe(url: string, transport: string): Promise<Probe> {
  const args = ['-v', 'error', '-rtsp_transport', transport, '-show_streams', '-show_packets', '-of', 'json'];
  const { stdout } = await run('ffprobe', [...args, '-read_intervals', '%+1', url], {
    timeout: PATIENCE_MS,
    maxBuffer: 2 ** 26,
  });
  return JSON.parse(stdout) as Probe;
}

for (const transport of ['tcp', 'udp'])
  test(`ffmpeg plays H.264 and AAC over ${transport}, from a key frame on, and decodes them without a fault`, async (t) => {
    const kiln = await server();
    const { streams, packets } = await probe(kiln.rtspUrl('talk'), transport);
    t.deepEqual(streams.map(({ codec_name }) => codec_name).sort(), ['aac', 'h264']);
    t.is(streams.find(({ codec_name }) => codec_name === 'h264')?.width, 160);
    t.is(streams.find(({ codec_name }) => codec_name === 'aac')?.sample_rate, '48000');
    t.true(packets.some(({ codec_type }) => codec_type === 'video'));
    const { stderr } = await run(
      'ffmpeg',
      [
        '-v',
        'warning',
        '-nostdin',
        '-rtsp_transport',
        transport,
        '-i',
        kiln.rtspUrl('talk'),
        '-t',
        '2',
        '-f',
        'null',
        '-',
      ],
      { timeout: PATIENCE_MS },
    );
    t.notRegex(stderr, /missed|error|corrupt|conceal|no frame|non-existing/i);
  });

/**
 * Plays until each of two ends of pipelines, of video and audio, has had its buffers. Both are linked: GStreamer takes a pad that is not
 * for an error where the other one is done. At the end, threads of its `rtspsrc` may come in each other's way: one has sent TEARDOWN
 * and closed the connection (captures show its FIN in front of the server's), the other still wants to send PAUSE, and says so.
 */
async function gstreamer(source: string, video: string, audio: string): Promise<void> {
  const pipeline = `rtspsrc name=s ${source} s. ! application/x-rtp,media=video ! ${video} s. ! application/x-rtp,media=audio ! ${audio}`;
  await run('gst-launch-1.0', ['-q', ...pipeline.split(' ')], { timeout: PATIENCE_MS }).catch((error: Error) => {
    if (!error.message.includes('gst_rtspsrc_pause')) throw error;
  });
}

const SINK = 'fakesink num-buffers=20';

for (const transport of ['tcp', 'udp'])
  test(`GStreamer plays video and audio over ${transport}, and decodes them`, async (t) => {
    const kiln = await server();
    const source = `location=${kiln.rtspUrl('talk')} protocols=${transport}`;
    const [video, audio] = ['rtph264depay ! h264parse ! avdec_h264', 'rtpmp4gdepay ! avdec_aac'];
    await t.notThrowsAsync(gstreamer(source, `${video} ! ${SINK}`, `${audio} ! ${SINK}`));
  });

test('ffmpeg plays over TLS', async (t) => {
  const kiln = await server();
  const url = kiln.rtspUrl('talk').replace('rtsp:', 'rtsps:').replace(`:${kiln.ports.rtspPlay}/`, `:${secured}/`);
  const { streams, packets } = await probe(url, 'tcp');
  t.deepEqual(streams.map((one) => one.codec_name).sort(), ['aac', 'h264']);
  t.true(packets.length > 10);
});

test('users are asked for a password, by ffmpeg and GStreamer alike', async (t) => {
  const kiln = await server();
  const url = (user: string) => kiln.rtspUrl('talk', user).replace('/app/', '/closed/');
  const { streams } = await probe(url('anna:s3%3Acret@'), 'tcp');
  t.is(streams.length, 2);
  for (const user of ['', 'anna:wrong@', 'eva:s3%3Acret@'])
    await t.throwsAsync(probe(url(user), 'tcp'), { message: /401 Unauthorized/ });
  t.notRegex(kiln.log, /s3(?::|%3A)cret/);
  await gstreamer(`location=${url('')} user-id=anna user-pw=s3:cret protocols=tcp`, SINK, SINK);
});

test('a stream that is not there is not found', async (t) => {
  const kiln = await server();
  await t.throwsAsync(probe(kiln.rtspUrl('none'), 'tcp'), { message: /404 Not Found/ });
});

test('a player is a session of the API, counted as rtsp, and can be kicked', async (t) => {
  const kiln = await server();
  const url = kiln.rtspUrl('talk') + '?session=watched';
  const playing = run('ffmpeg', ['-v', 'error', '-nostdin', '-rtsp_transport', 'tcp', '-i', url, '-f', 'null', '-'], {
    timeout: PATIENCE_MS,
  }).then(
    () => 'ended',
    () => 'ended',
  );
  const sessions = '/v1/vhosts/default/apps/app/streams/talk/sessions';
  await until('it is listed', async () => JSON.stringify((await kiln.api(sessions)).body.response).includes('watched'));
  const { body } = await kiln.api<{ connections: Record<string, number> }>('/v1/stats/current/vhosts/default/apps/app');
  t.true((body.response.connections['rtsp'] ?? 0) > 0);
  await kiln.api(`${sessions}/watched`, 'DELETE');
  t.is(await playing, 'ended');
});

/** Publishes until it is stopped. */
function publish(url: string, transport: string): Program {
  return new Program('ffmpeg', [...patternArguments(PICTURE), '-f', 'rtsp', '-rtsp_transport', transport, url]);
}

/** Codecs of a published stream, once it plays. */
async function played(url: string, user = ''): Promise<string[]> {
  const { streams, packets } = await until(`${url} plays`, () =>
    probe(url.replace('//', `//${user}`), 'tcp').catch(() => undefined),
  );
  return packets.length > 0 ? streams.map(({ codec_name }) => codec_name).sort() : [];
}

for (const transport of ['tcp', 'udp'])
  test(`ffmpeg publishes over ${transport}, and its stream ends with it`, async (t) => {
    const kiln = await server();
    const name = `by-${transport}`;
    const program = publish(kiln.rtspUrl(name), transport);
    t.teardown(() => program.stop());
    const { input } = await kiln.liveStream(name);
    t.is(input.sourceType, 'Rtsp');
    t.is(input.sourceUrl, kiln.rtspUrl(name));
    t.is(input.connection, undefined);
    t.deepEqual(await played(kiln.rtspUrl(name)), ['aac', 'h264']);
    const { body } = await kiln.api<{ providers: { connections: Record<string, number> } }>(
      '/v2/stats/current/vhosts/default/apps/app',
    );
    t.true((body.response.providers.connections['rtsp'] ?? 0) > 0);
    program.signal('SIGINT');
    await until('its stream has ended', async () => (await kiln.stream(name)).status === 404);
  });

test('ffmpeg publishes over TLS, with the password of a user', async (t) => {
  const kiln = await server();
  const plain = kiln.rtspUrl('secret').replace('/app/', '/closed/');
  const secure = (user: string) =>
    plain.replace('rtsp://', `rtsps://${user}`).replace(`:${kiln.ports.rtspPlay}/`, `:${secured}/`);
  const program = publish(secure('anna:s3%3Acret@'), 'tcp');
  t.teardown(() => program.stop());
  t.deepEqual(await played(plain, 'anna:s3%3Acret@'), ['aac', 'h264']);
  const denied = publish(plain.replace('//', '//anna:wrong@'), 'tcp');
  t.not(await denied.exited(), 0);
  t.regex(denied.stderr, /401 Unauthorized/);
});

test('a second publisher of a name is rejected, and the first is ended by the API', async (t) => {
  const kiln = await server();
  const first = publish(kiln.rtspUrl('taken'), 'tcp');
  t.teardown(() => first.stop());
  await kiln.liveStream('taken');
  const second = publish(kiln.rtspUrl('taken'), 'tcp');
  t.teardown(() => second.stop());
  t.not(await second.exited(), 0);
  t.regex(second.stderr, /403 Forbidden/);
  await kiln.api('/v1/vhosts/default/apps/app/streams/taken', 'DELETE');
  t.not(await first.exited(), 0);
});

for (const transport of ['tcp', 'udp'])
  test(`GStreamer publishes over ${transport}`, async (t) => {
    const kiln = await server();
    const name = `gst-${transport}`;
    const pipeline = [
      `rtspclientsink name=s protocols=${transport} location=${kiln.rtspUrl(name)}`,
      'videotestsrc is-live=true ! video/x-raw,width=160,height=90,framerate=15/1 ! x264enc tune=zerolatency key-int-max=30 ! h264parse ! queue ! s.sink_0',
      'audiotestsrc is-live=true ! audio/x-raw,rate=48000,channels=2 ! opusenc ! queue ! s.sink_1',
    ];
    const program = new Program('gst-launch-1.0', ['-q', ...pipeline.join(' ').split(' ')]);
    t.teardown(() => program.stop());
    const { input } = await kiln.liveStream(name);
    t.deepEqual(input.tracks.map(({ video, audio }) => (video ?? audio)?.codec).sort(), ['H264', 'OPUS']);
    t.deepEqual(await played(kiln.rtspUrl(name)), ['aac', 'h264']);
  });

// ffmpeg makes packets of 1448 bytes of 6000 samples of G.711, which are more than Kiln puts in one, and frames of 20 ms of G.722
for (const [encoder, name, rate, largest] of [
  ['pcm_mulaw', 'pcm_mulaw', 8000, 1200],
  ['pcm_alaw', 'pcm_alaw', 8000, 1200],
  ['g722', 'adpcm_g722', 16_000, 160],
] as const)
  test(`${encoder} is published and played over RTSP without encoding, in packets of any size`, async (t) => {
    const kiln = await server();
    const sound = ['-re', '-f', 'lavfi', '-i', `sine=frequency=440:sample_rate=${rate}`, '-af', 'asetnsamples=n=6000'];
    const url = kiln.rtspUrl(encoder).replace('/app/', '/bypass/');
    const program = new Program('ffmpeg', [...sound, '-c:a', encoder, '-f', 'rtsp', '-rtsp_transport', 'tcp', url]);
    t.teardown(() => program.stop());
    const { streams, packets } = await until('it can be played', () => probe(url, 'tcp').catch(() => undefined));
    t.deepEqual(
      streams.map(({ codec_name, sample_rate }) => [codec_name, sample_rate]),
      [[name, `${rate}`]],
    );
    t.true(packets.some(({ size }) => Number(size) === largest));
    const next = packets.map(({ pts, size }) => pts + Number(size));
    t.deepEqual(
      packets.slice(1).map(({ pts }) => pts),
      next.slice(0, -1),
      'a byte for each tick of the clock',
    );
    const { stderr } = await run(
      'ffmpeg',
      [
        '-v',
        'info',
        '-nostdin',
        '-rtsp_transport',
        'udp',
        '-i',
        url,
        '-t',
        '1',
        '-af',
        'volumedetect',
        '-f',
        'null',
        '-',
      ],
      { timeout: PATIENCE_MS },
    );
    t.regex(stderr, /max_volume: -1[5-9]\.\d dB/, 'the tone of ffmpeg is of an eighth of the full scale');
  });
