import test from 'ava';
import type { ApplicationConfig } from '../../../src/config/model.ts';
import { configOf, LEAST } from '../deploy/support.ts';
import { application, load, profile, serverXml, vhost } from './support.ts';

const BARE = '<Server version="8"><Type>edge</Type><IP>*</IP><IP>::</IP><Bind/></Server>';

test('defaults of the server', async (t) => {
  const { config } = await load(t, BARE);
  t.deepEqual(config, {
    name: 'Kiln',
    type: 'edge',
    ip: ['*', '::'],
    privacyProtection: false,
    bind: { managers: {}, providers: {}, publishers: {} },
    modules: {
      http2: { enable: true },
      llhls: { enable: true },
      p2p: { enable: false, maxClientPeersPerHostPeer: 2 },
      recovery: { enable: false, deleteLazyStreamTimeout: 0 },
      dynamicAppRemoval: { enable: false },
      etag: { enable: false },
      ertmp: { enable: false },
      jemalloc: { backgroundPurge: true },
      taskPool: { threadCount: 4, maxTasks: 128 },
    },
    defaults: {},
    virtualHosts: [],
  });
});

test('OVT is for private networks, or those that are named', async (t) => {
  const networks = async (inner: string) => {
    const bind = `<Publishers><OVT><Port>9000</Port>${inner}</OVT></Publishers>`;
    return (await load(t, serverXml({ bind }))).config.bind.publishers.ovt?.networks.map(
      ({ address, prefix }) => `${address}/${prefix}`,
    );
  };
  t.deepEqual(await networks(''), [
    '127.0.0.0/8',
    '::1/128',
    '10.0.0.0/8',
    '172.16.0.0/12',
    '192.168.0.0/16',
    'fc00::/7',
  ]);
  t.deepEqual(await networks('<Networks>203.0.113.0/24, 2001:db8::/32</Networks>'), [
    '203.0.113.0/24',
    '2001:db8::/32',
  ]);
});

test('defaults of managers', async (t) => {
  const server = '<Managers><Host><Names><Name>*</Name></Names></Host></Managers>';
  const { config, generatedAccessToken } = await load(t, serverXml({ server }));
  t.deepEqual(config.managers?.api, { accessToken: '', storage: { enabled: true, path: 'conf/api_data' } });
  t.is(generatedAccessToken, undefined);
});

test('a module without a port is off', async (t) => {
  const bind =
    '<Managers><API/><Metrics/></Managers><Providers><RTMP><WorkerCount>2</WorkerCount></RTMP><SRT/><WebRTC/></Providers>' +
    '<Publishers><LLHLS/><OVT/><WebRTC><Signalling/><IceCandidates/></WebRTC></Publishers>';
  const { config } = await load(t, serverXml({ bind }));
  t.deepEqual(config.bind, { managers: {}, providers: {}, publishers: {} });
});

test('a port of its own for the metrics', async (t) => {
  const { config } = await load(t, serverXml({ bind: '<Managers><Metrics><Port>9100</Port></Metrics></Managers>' }));
  t.deepEqual(config.bind.managers, { metrics: { port: 9100 } });
});

test('config/cluster.xml has a port for the metrics where the environment names one', async (t) => {
  const portOf = async (env: object) => (await configOf(t, { ...LEAST, ...env })).bind.managers.metrics?.port;
  t.is(await portOf({}), undefined);
  t.is(await portOf({ KILN_METRICS_PORT: '9100' }), 9100);
  t.is(await portOf({ KILN_METRICS_PORT: '' }), undefined);
  await t.throwsAsync(portOf({ KILN_METRICS_PORT: '0' }), { message: /Metrics\/Port: "0" is not a port/ });
});

test('config/cluster.xml says where clients and HAProxy reach a node where the environment does', async (t) => {
  const of = async (env: object) => {
    const { node, relayFanOut } = (await configOf(t, { ...LEAST, ...env })).cluster ?? {};
    return [node?.publicUrl, node?.agentCheckPort, relayFanOut];
  };
  t.deepEqual(await of({}), [undefined, undefined, 8]);
  const empty = { KILN_PUBLIC_URL: '', KILN_AGENT_CHECK_PORT: '', KILN_RELAY_FAN_OUT: '' };
  t.deepEqual(await of(empty), [undefined, undefined, 8]);
  const url = 'https://node-1.example.com:3334';
  const given = { KILN_PUBLIC_URL: url, KILN_AGENT_CHECK_PORT: '9777', KILN_RELAY_FAN_OUT: '3' };
  t.deepEqual(await of(given), [url, 9777, 3]);
  await t.throwsAsync(of({ KILN_PUBLIC_URL: 'node-1' }), {
    message: /PublicUrl: "node-1" is not an http or https URL/,
  });
  await t.throwsAsync(of({ KILN_AGENT_CHECK_PORT: 'none' }), { message: /AgentCheckPort: "none" is not a port/ });
});

test('an element that no variable would fill is not to be empty', async (t) => {
  const bind = '<Managers><Metrics><Port></Port></Metrics></Managers>';
  await t.throwsAsync(load(t, serverXml({ bind })), { message: /Metrics\/Port: "" is not a port/ });
});

test('an element whose variable is not set is looked at all the same', async (t) => {
  const of = (metrics: string) => load(t, serverXml({ bind: `<Managers><Metrics>${metrics}</Metrics></Managers>` }));
  const empty = '${env:KILN_TEST_NOT_SET}';
  const { config, warnings } = await of(`<Port more="1">${empty}<Other/></Port>`);
  t.deepEqual(config.bind.managers, {});
  t.regex(warnings.join(), /Port\/@more: is unknown[^]*unknown element Other/);
  await t.throwsAsync(of(`<Port>${empty}</Port><Port>9100</Port>`), { message: /Metrics\/Port: is given twice/ });
});

test('defaults of listeners', async (t) => {
  const bind =
    '<Providers><RTMP><TLSPort>1936</TLSPort></RTMP><SRT><Port>9999</Port></SRT><MPEGTS><Port>4000-4001/udp</Port></MPEGTS></Providers>' +
    '<Publishers><LLHLS><TLSPort>443</TLSPort></LLHLS>' +
    '<WebRTC><Signalling><Port>3333</Port></Signalling></WebRTC></Publishers>';
  const { config } = await load(t, serverXml({ bind }));
  t.deepEqual(config.bind.providers, {
    rtmp: { tlsPort: 1936, threadPerSocket: false },
    srt: { port: [{ first: 9999, last: 9999 }], streamMap: [], options: [], threadPerSocket: false },
    mpegts: { port: [{ first: 4000, last: 4001 }], threadPerSocket: false },
  });
  t.deepEqual(config.bind.publishers, {
    llhls: { tlsPort: 443 },
    webrtc: {
      signalling: { port: 3333, threadPerSocket: false },
      iceCandidates: {
        iceCandidate: [{ address: '*', first: 10000, last: 10000, protocol: 'udp' }],
        tcpRelay: [],
        tcpRelayForce: false,
        enableLinkLocalAddress: false,
        defaultTransport: 'udptcp',
      },
      iceServers: [],
    },
  });
});

test('defaults of a virtual host', async (t) => {
  const { config } = await load(
    t,
    serverXml({
      vhosts: vhost(
        '<SignedPolicy><PolicyQueryKeyName>p</PolicyQueryKeyName><SignatureQueryKeyName>s</SignatureQueryKeyName>' +
          '<SecretKey>k</SecretKey><Enables/></SignedPolicy>' +
          '<AdmissionWebhooks><ControlServerUrl>http://127.0.0.1/</ControlServerUrl></AdmissionWebhooks>' +
          '<Origins><Origin><Location>/a</Location><Pass><Scheme>OVT</Scheme><Urls><Url>h/a</Url></Urls></Pass></Origin>' +
          '<Origin><Location>/b</Location><Pass><Scheme>rtsp</Scheme><Urls><Url>h/b</Url></Urls></Pass></Origin>' +
          '</Origins>' +
          '<OriginMapStore><RedisServer><Host>127.0.0.1:6379</Host></RedisServer></OriginMapStore>',
      ),
    }),
  );
  const pass = (scheme: string, url: string) => ({ scheme, urls: { url: [url] }, forwardQueryParams: true });
  const origin = { persistent: false, failback: false, strictLocation: false, ignoreRtcpSRTimestamp: false };
  t.deepEqual<unknown, unknown>(config.virtualHosts[0], {
    name: 'default',
    distribution: 'ovenmediaengine.com',
    host: { names: ['*'] },
    signedPolicy: {
      policyQueryKeyName: 'p',
      signatureQueryKeyName: 's',
      secretKey: 'k',
      algorithm: 'sha1',
      enables: { providers: '', publishers: '' },
    },
    admissionWebhooks: { controlServerUrl: 'http://127.0.0.1/', timeout: 3000, recheckInterval: 0 },
    origins: {
      properties: {
        noInputFailoverTimeout: 3000,
        unusedStreamDeletionTimeout: 60000,
        streamFailbackTimeout: 3000,
        retryCount: 0,
      },
      origin: [
        { location: '/a', pass: pass('ovt', 'h/a'), ...origin, relay: true },
        { location: '/b', pass: pass('rtsp', 'h/b'), ...origin, relay: false },
      ],
    },
    originMapStore: { redisServer: { host: '127.0.0.1:6379' } },
    applications: [],
  });
});

const only = async (...args: Parameters<typeof load>): Promise<ApplicationConfig> => {
  const { config } = await load(...args);
  return config.virtualHosts[0]?.applications[0] as ApplicationConfig;
};

test('defaults of providers', async (t) => {
  const names = ['RTMP', 'SRT', 'MPEGTS', 'RTSPPull', 'RTSP', 'OVT', 'WebRTC', 'Schedule', 'Multiplex', 'FILE'];
  const all = names.map((name) => `<${name}/>`).join('');
  const { providers } = await only(t, serverXml({ apps: application(`<Providers>${all}</Providers>`) }));
  const common = { maxConnection: 0, timestampMode: 'Auto' };
  const silence = { packetSilenceTimeoutMs: 0 };
  t.deepEqual<unknown, unknown>(providers, {
    rtmp: {
      ...common,
      ...silence,
      firstMediaWaitTimeoutMs: 0,
      blockDuplicateStreamName: true,
      passthroughOutputProfile: false,
    },
    srt: { ...common, ...silence, blockDuplicateStreamName: true, audioMap: [] },
    mpegts: { ...common, packetSilenceTimeoutMs: 1500, streams: [], audioMap: [], packetReordering: false },
    rtspPull: { ...common, blockDuplicateStreamName: true },
    rtsp: { ...common, ...silence, blockDuplicateStreamName: true },
    ovt: common,
    webrtc: {
      ...common,
      ...silence,
      timeout: 30000,
      firInterval: 3000,
      rtcpBasedTimestamp: false,
      rtx: { enable: false, maxHoldMs: 400 },
    },
    schedule: { ...common, mediaRootDir: '', scheduleFilesDir: '' },
    multiplex: { ...common, ...silence, muxFilesDir: '' },
    file: common,
  });
});

test('defaults of publishers', async (t) => {
  const body =
    '<Publishers><WebRTC><PlayoutDelay/></WebRTC><LLHLS><DVR/><DRM/></LLHLS><HLS/><FILE/><Push/><Thumbnail/><Playback/>' +
    '<SRT/><OVT/></Publishers>';
  const { publishers } = await only(t, serverXml({ apps: application(body) }));
  const common = { appWorkerCount: 1, streamWorkerCount: 8, delayBufferTimeMs: 0, maxConnection: 0 };
  const played = { ...common, clusterMaxConnection: 0 };
  const hls = {
    ...played,
    segmentDuration: 10,
    segmentCount: 5,
    originMode: false,
    serverTimeBasedSegmentNumbering: false,
    createDefaultPlaylist: true,
    cacheControl: {
      masterPlaylistMaxAge: 0,
      chunklistWithDirectivesMaxAge: 60,
      segmentMaxAge: -1,
      partialSegmentMaxAge: -1,
    },
    defaultQueryString: [],
    dumps: [],
  };
  t.deepEqual<unknown, unknown>(publishers, {
    ...played,
    webrtc: {
      ...played,
      timeout: 30000,
      rtx: false,
      ulpfec: false,
      jitterBuffer: false,
      createDefaultPlaylist: true,
      bandwidthEstimation: 'All',
      playoutDelay: { min: 0, max: 40950 },
    },
    llhls: {
      ...hls,
      chunkDuration: 0.5,
      partHoldBack: 1.5,
      enablePreloadHint: true,
      dvr: { enable: false, tempStoragePath: '/tmp/ll_hls_dvr', maxDuration: 3600, eventPlaylistType: false },
      drm: { enable: false, infoFile: '', keyServer: [], keyRotationPeriod: 0, refuseClear: false },
    },
    hls,
    file: common,
    push: { ...common, connectionTimeout: 5000, sendTimeout: 2000 },
    thumbnail: played,
    playback: played,
    srt: played,
    ovt: played,
  });
});

test('defaults of application options', async (t) => {
  const body = '<TranscodeWebhook/><EventGenerator/><Subtitles><Rendition><Label>en</Label></Rendition></Subtitles>';
  t.like(await only(t, serverXml({ apps: application(body) })), {
    transcodeWebhook: {
      enable: false,
      timeout: 1500,
      useLocalProfilesOnConnectionFailure: true,
      useLocalProfilesOnServerDisallow: false,
      useLocalProfilesOnErrorResponse: false,
    },
    eventGenerator: { enable: false, path: '' },
    subtitles: { enable: false, rendition: [{ label: 'en', autoSelect: false, forced: false }] },
    providers: {},
  });
});

test('the output profile of an application that names none', async (t) => {
  const { outputProfiles } = await only(t, serverXml());
  const sound = { bypass: false, bitrate: 128000, samplerate: 48000, channel: 2, bypassIfMatch: { codec: 'eq' } };
  t.deepEqual(outputProfiles.decodes, { threadCount: 2, onlyKeyframes: false });
  t.false(outputProfiles.onDemand);
  t.is(outputProfiles.outputProfile.length, 1);
  t.like(outputProfiles.outputProfile[0], {
    name: 'default',
    outputStreamName: '${OriginStreamName}',
    encodes: {
      videos: [{ name: 'bypass_video', bypass: true }],
      audios: [
        { name: 'opus', codec: 'opus', ...sound },
        { name: 'aac', codec: 'aac', ...sound },
      ],
      images: [],
      data: [],
    },
    playlists: [],
  });
});

test('elements common to all output profiles of an application are read with their defaults', async (t) => {
  const stt = '<STT><Rendition><Engine>whisper</Engine><OutputSubtitleLabel>en</OutputSubtitleLabel></Rendition></STT>';
  const body =
    '<OutputProfiles><Decodes><OnlyKeyframes>true</OnlyKeyframes></Decodes><OnDemand>true</OnDemand>' +
    `<MediaOptions><Overlays/>${stt}</MediaOptions></OutputProfiles>`;
  const { outputProfiles } = await only(t, serverXml({ apps: application(body) }));
  t.like(outputProfiles, {
    decodes: { threadCount: 2, onlyKeyframes: true },
    onDemand: true,
    mediaOptions: {
      overlays: { enable: false, path: '' },
      stt: {
        enable: true,
        rendition: [
          {
            engine: 'whisper',
            outputSubtitleLabel: 'en',
            inputAudioIndex: 0,
            sourceLanguage: 'auto',
            translation: false,
            stepMs: 2000,
            lengthMs: 10_000,
            keepMs: 1500,
          },
        ],
      },
    },
  });
});

test('conditions of a bypass', async (t) => {
  const conditions =
    '<BypassIfMatch><Codec>eq</Codec><Samplerate>lte</Samplerate><Channel>gte</Channel></BypassIfMatch>';
  const encodes = `<Encodes><Audio><Codec>aac</Codec><Bitrate>128K</Bitrate>${conditions}</Audio></Encodes>`;
  const { outputProfiles } = await only(t, serverXml({ apps: profile('', encodes) }));
  t.like(outputProfiles.outputProfile[0]?.encodes.audios[0], {
    bitrate: 131_072,
    bypassIfMatch: { codec: 'eq', samplerate: 'lte', channel: 'gte' },
  });
});

test('defaults of an output profile', async (t) => {
  const encodes =
    '<Encodes><Video><Bypass>true</Bypass></Video><Video><Codec>h264</Codec><Bitrate>2M</Bitrate></Video>' +
    '<Audio><Bypass>true</Bypass></Audio><Image><Codec>JPEG</Codec></Image></Encodes>';
  const body =
    '<Playlist><FileName>abr</FileName><Rendition/><RenditionTemplate><Name>${Height}p</Name><VideoTemplate/>' +
    '<AudioTemplate/></RenditionTemplate></Playlist><TrackSet><Name>t</Name><Video><Name>v</Name></Video></TrackSet>';
  const { outputProfiles } = await only(t, serverXml({ apps: profile(body, encodes) }));
  const video = {
    width: 0,
    height: 0,
    framerate: 0,
    skipFrames: -1,
    threadCount: -1,
    keyFrameIntervalType: 'frame',
    keyFrameInterval: 0,
    lookahead: -1,
  };
  t.deepEqual<unknown, unknown>(outputProfiles.outputProfile[0], {
    name: 'p',
    outputStreamName: '${OriginStreamName}',
    encodes: {
      videos: [
        { ...video, name: 'video_0', bypass: true },
        { ...video, name: 'video_1', bypass: false, codec: 'h264', bitrate: 2097152 },
      ],
      audios: [{ name: 'audio_0', bypass: true, samplerate: 0, channel: 0 }],
      images: [{ name: 'image_0', codec: 'jpeg', width: 0, height: 0, framerate: 0, skipFrames: -1 }],
      data: [],
    },
    playlists: [
      {
        fileName: 'abr',
        options: {
          webRtcAutoAbr: true,
          webrtcAudioOnlyFallback: false,
          hlsChunklistPathDepth: -1,
          enableTsPackaging: false,
          enableSubtitles: true,
        },
        renditions: [{ videoIndexHint: -1, audioIndexHint: -1 }],
        rendition_templates: [
          { name: '${Height}p', video_template: { encodingType: 'all' }, audio_template: { encodingType: 'all' } },
        ],
      },
    ],
    tracksets: [{ name: 't', strict: false, videos: [{ name: 'v', indexHint: -1 }], audios: [] }],
  });
});

test('defaults of speech to text', async (t) => {
  const body =
    '<OutputProfiles><MediaOptions><Overlays/><STT><Rendition><Engine>whisper</Engine>' +
    '<OutputSubtitleLabel>en</OutputSubtitleLabel></Rendition></STT></MediaOptions></OutputProfiles>';
  const { outputProfiles } = await only(t, serverXml({ apps: application(body) }));
  t.deepEqual<unknown, unknown>(outputProfiles.mediaOptions, {
    overlays: { enable: false, path: '' },
    stt: {
      enable: true,
      rendition: [
        {
          engine: 'whisper',
          outputSubtitleLabel: 'en',
          inputAudioIndex: 0,
          sourceLanguage: 'auto',
          translation: false,
          stepMs: 2000,
          lengthMs: 10000,
          keepMs: 1500,
        },
      ],
    },
  });
});

test('defaults of a cluster', async (t) => {
  const server =
    '<Cluster><Secret>s</Secret><Redis><Sentinels><Sentinel>a:26379</Sentinel><Sentinel>b:26379</Sentinel>' +
    '</Sentinels></Redis>' +
    '<Node><Id>n</Id><AdvertiseAddress>10.0.0.1</AdvertiseAddress><Port>7946</Port></Node></Cluster>' +
    '<Managers><Host><Names><Name>*</Name></Names></Host><API><AccessToken>t</AccessToken></API></Managers>';
  const { config } = await load(t, serverXml({ server }));
  t.deepEqual(config.cluster, {
    name: 'kiln',
    relayFanOut: 8,
    secret: 's',
    redis: {
      sentinels: [
        { host: 'a', port: 26379 },
        { host: 'b', port: 26379 },
      ],
      masterName: 'mymaster',
      cluster: [],
      user: '',
      password: '',
      sentinelUser: '',
      sentinelPassword: '',
    },
    node: {
      id: 'n',
      advertiseAddress: '10.0.0.1',
      port: 7946,
      drainTimeout: 30_000,
      limits: { load: 90, bitrate: 0, viewers: 0 },
    },
  });
});
