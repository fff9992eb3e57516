import test, { type ExecutionContext } from 'ava';
import fastify, { type FastifyInstance } from 'fastify';
import type { EnhancedBroadcastingConfig } from '../../../src/config/model.ts';
import { Registry } from '../../../src/core/registry.ts';
import { videoSettings, type EncoderRequest } from '../../../src/web/broadcast-ladder.ts';
import { clientConfigurationRoutes } from '../../../src/web/client-configuration.ts';
import { addVhost } from '../../support/server/live.ts';

const video = (height: number, bitrate: number, rest: object = {}): EnhancedBroadcastingConfig['video'][number] => ({
  height,
  bitrate,
  framerate: 0,
  codec: 'h264',
  encoder: '',
  ...rest,
});
const LADDER: EnhancedBroadcastingConfig = {
  video: [video(1080, 6_000_000), video(720, 2_500_000, { framerate: 30 }), video(360, 600_000, { framerate: 30 })],
  audioBitrate: 160_000,
  keyFrameInterval: 2,
};

/** What OBS Studio 31 sends, without what names a machine. */
const OBS = {
  authentication: 'live?policy=a&signature=b',
  capabilities: {
    cpu: { logical_cores: 24, name: 'CPU', physical_cores: 12, speed: 3800 },
    gaming_features: { game_bar_enabled: null, game_mode_enabled: null, hags_enabled: false },
    gpu: [
      { dedicated_video_memory: 12_578_717_696, device_id: 1, driver_version: '32', model: 'GPU', vendor_id: 4318 },
    ],
    memory: { free: 54_218_178_560, total: 68_666_937_344 },
    system: { arm: false, armEmulation: false, bits: 64, build: 19_045, name: 'Windows', version: '10.0' },
  },
  client: { name: 'obs-studio', supported_codecs: ['h265', 'h264', 'av1'], version: '31.0.0' },
  preferences: {
    canvas_height: 1080,
    canvas_width: 1920,
    composition_gpu_index: 0,
    framerate: { denominator: 1, numerator: 60 },
    height: 1080,
    maximum_aggregate_bitrate: null,
    maximum_video_tracks: null,
    vod_track_audio: false,
    width: 1920,
  },
  schema_version: '2025-01-25',
  service: 'IVS',
  stream_attempt_start_time: '2026-11-30T12:00:00Z',
} as const;

/** Some of what the reference demands of each video. */
const sizes = (settings: ReturnType<typeof videoSettings>) =>
  settings.map(({ type, width, height, framerate: { numerator, denominator }, settings: { bitrate } }) =>
    [type, `${width}x${height}`, `${numerator}/${denominator}`, bitrate].join(' '),
  );

test('an encoder gets each rendition of the ladder in the shape of its canvas, with its frame rate divided', (t) => {
  t.deepEqual(sizes(videoSettings(LADDER, OBS as never, false)), [
    'jim_nvenc 1920x1080 60/1 6000',
    'jim_nvenc 1280x720 60/2 2500',
    'jim_nvenc 640x360 60/2 600',
  ]);
  const upright = {
    preferences: { canvas_width: 1080, canvas_height: 1920, framerate: { numerator: 30_000, denominator: 1001 } },
  };
  t.deepEqual(sizes(videoSettings(LADDER, upright, false)), [
    'obs_x264 608x1080 30000/1001 6000',
    'obs_x264 406x720 30000/1001 2500',
    'obs_x264 202x360 30000/1001 600',
  ]);
});

const LIMITED: readonly (readonly [string, EncoderRequest, readonly number[]])[] = [
  ['says nothing', {}, [6000, 2500, 600]],
  ['has a small canvas', { preferences: { canvas_width: 1280, canvas_height: 720 } }, [2500, 600]],
  ['has a smaller canvas than any', { preferences: { canvas_width: 320, canvas_height: 180 } }, []],
  ['sends two tracks at most', { preferences: { maximum_video_tracks: 2 } }, [6000, 2500]],
  ['sends any number of tracks', { preferences: { maximum_video_tracks: 0 } }, [6000, 2500, 600]],
  // of which the audio takes 160
  ['sends 6760 kbit/s at most', { preferences: { maximum_aggregate_bitrate: 6760 } }, [6000, 600]],
  ['sends 6759 kbit/s at most', { preferences: { maximum_streaming_bandwidth: 6759 } }, [6000]],
  ['sends 700 kbit/s at most', { preferences: { maximum_aggregate_bitrate: 700 } }, []],
];

for (const [what, request, bitrates] of LIMITED)
  test(`an encoder that ${what} gets renditions of [${bitrates.join()}] kbit/s`, (t) => {
    t.deepEqual(
      videoSettings(LADDER, request, false).map(({ settings }) => settings['bitrate']),
      [...bitrates],
    );
  });

test('a server without Enhanced RTMP asks for one video', (t) => {
  t.is(videoSettings(LADDER, {}, true).length, 1);
});

test('the codec is the configured one where the encoder has it, and H.264 elsewhere', (t) => {
  const types = (codec: 'h265' | 'av1', encoder: string, request: EncoderRequest) =>
    videoSettings({ ...LADDER, video: [video(720, 1_000_000, { codec, encoder })] }, request, false).map(
      ({ type }) => type,
    );
  const nvidia = { capabilities: { gpu: [{ vendor_id: 4098 }, { vendor_id: 4318 }] } };
  t.deepEqual(types('h265', '', { ...nvidia, client: { supported_codecs: ['h264', 'hevc'] } }), ['jim_hevc_nvenc']);
  t.deepEqual(types('h265', '', { ...nvidia, client: { supported_codecs: ['h264'] } }), ['jim_nvenc']);
  t.deepEqual(types('h265', '', { client: { supported_codecs: ['h264', 'h265'] } }), ['obs_x264']);
  t.deepEqual(types('av1', '', { ...nvidia, client: { supported_codecs: ['av1'] } }), ['jim_nvenc']);
  t.deepEqual(types('av1', 'my_av1', { client: { supported_codecs: ['av1'] } }), ['my_av1']);
  t.deepEqual(types('av1', 'my_av1', {}), ['obs_x264']);
});

async function serve(
  t: ExecutionContext,
  rtmp: object = { enhancedBroadcasting: LADDER },
  ports: object = { port: 1935, tlsPort: 1936 },
) {
  const registry = new Registry();
  addVhost(registry, { applications: ['a b'], providers: { rtmp } as never });
  const app = fastify();
  await app.register(clientConfigurationRoutes({ registry, publish: { rtmp: ports }, extended: true }));
  t.teardown(() => app.close());
  return app;
}

const ask = (app: FastifyInstance, payload: string | object = OBS, url = '/a%20b/GetClientConfiguration') =>
  app.inject({ method: 'POST', url, headers: { 'content-type': 'application/json', host: 'live.example' }, payload });

test('OBS Studio is told where to publish, with the stream key that it has, and what', async (t) => {
  const { statusCode, headers, body } = await ask(await serve(t));
  t.is(statusCode, 200);
  t.is(headers['cache-control'], 'no-store');
  const { meta, encoder_configurations: videos, ...rest } = JSON.parse(body);
  t.like(meta, { schema_version: '2025-01-25', service: 'IVS' });
  t.regex(meta.config_id, /^[0-9a-f-]{36}$/);
  t.deepEqual(rest, {
    ingest_endpoints: [
      { protocol: 'RTMP', url_template: 'rtmp://live.example/a%20b/{stream_key}', authentication: OBS.authentication },
      {
        protocol: 'RTMPS',
        url_template: 'rtmps://live.example:1936/a%20b/{stream_key}',
        authentication: OBS.authentication,
      },
    ],
    audio_configurations: { live: [{ codec: 'aac', track_id: 0, channels: 2, settings: { bitrate: 160 } }] },
  });
  t.deepEqual(videos[1], {
    type: 'jim_nvenc',
    width: 1280,
    height: 720,
    framerate: { numerator: 60, denominator: 2 },
    gpu_scale_type: 'OBS_SCALE_BICUBIC',
    bitrate_interpolation_points: [1250, 1875, 2500],
    settings: { rate_control: 'CBR', bitrate: 2500, keyint_sec: 2, profile: 'main', preset2: 'p4', bf: 0 },
  });
});

const REFUSED: readonly (readonly [string, number, RegExp, string | object, string?])[] = [
  ['is no JSON', 400, /JSON/, '{'],
  ['is no object', 400, /not one of an encoder/, '[]'],
  ['has a canvas of text', 400, /preferences\/canvas_width/, { preferences: { canvas_width: '<b>' } }],
  ['has a canvas without pixels', 400, /preferences\/height/, { preferences: { height: 0 } }],
  ['has a frame rate of nothing', 400, /denominator/, { preferences: { framerate: { numerator: 1, denominator: 0 } } }],
  ['fits no rendition', 409, /No configured rendition fits/, { preferences: { canvas_width: 64, canvas_height: 64 } }],
  ['is too long', 413, /too large/, { authentication: 'x'.repeat(70_000) }],
  ['is for an unknown application', 404, /&lt;none&gt;/, OBS, '/%3Cnone%3E/GetClientConfiguration'],
];

for (const [what, status, reason, payload, url] of REFUSED)
  test(`a request of an encoder that ${what} is refused with a text to show`, async (t) => {
    const answer = await ask(await serve(t), payload, url);
    t.is(answer.statusCode, status);
    const { result, html_en_us } = answer.json().status;
    t.is(result, 'error');
    t.regex(html_en_us, reason);
  });

test('encoders are refused where nothing is configured for them, or RTMP is not listened for', async (t) => {
  for (const app of [await serve(t, {}), await serve(t, undefined, {})]) {
    const { statusCode, body } = await ask(app);
    t.is(statusCode, 404);
    t.regex(body, /Enhanced Broadcasting is not configured for the application: \[a b\]/);
  }
});

test('a WHIP offer for a stream of that name goes on to others', async (t) => {
  const app = await serve(t);
  app.addContentTypeParser('application/sdp', { parseAs: 'string' }, (_request, body, done) => done(null, body));
  app.post('/:app/:stream', async (request) => (request.params as { stream: string }).stream);
  const headers = { 'content-type': 'application/sdp' };
  const url = '/app/GetClientConfiguration?direction=whip';
  t.is((await app.inject({ method: 'POST', url, headers, payload: 'v=0' })).body, 'GetClientConfiguration');
});
