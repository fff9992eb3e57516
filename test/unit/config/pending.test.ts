import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { application, load, profile, serverXml, vhost } from './support.ts';

const warningsOf = async (t: Parameters<typeof load>[0], ...parts: Parameters<typeof serverXml>): Promise<string[]> => {
  const { warnings } = await load(t, serverXml(...parts));
  return warnings.map((line) => line.split(' is not available')[0] as string);
};

test('modules that are not there warn once each, wherever and however often they are configured', async (t) => {
  const providers = '<Providers><SRT/><WebRTC/><RTSPPull/></Providers>';
  const publishers = '<Publishers><WebRTC><Ulpfec>true</Ulpfec></WebRTC><Push/></Publishers>';
  t.deepEqual(
    await warningsOf(t, {
      bind: '<Providers><SRT><Port>9999</Port></SRT></Providers><Publishers><LLHLS><Port>3333</Port></LLHLS></Publishers>',
      apps: application(providers + publishers, 'a') + application(providers + publishers, 'b'),
    }),
    ['Ulpfec'],
  );
});

test('several videos from one encoder warn where Enhanced RTMP is off', async (t) => {
  const video = '<Video><Height>720</Height><Bitrate>2500000</Bitrate></Video>';
  const broadcasting = `<EnhancedBroadcasting>${video}</EnhancedBroadcasting>`;
  const apps = application(`<Providers><RTMP>${broadcasting}</RTMP></Providers>`);
  t.deepEqual(await warningsOf(t, { apps }), [
    'EnhancedBroadcasting without Modules/ERTMP asks encoders for the first video alone',
  ]);
  t.deepEqual(await warningsOf(t, { apps, server: '<Modules><ERTMP><Enable>true</Enable></ERTMP></Modules>' }), []);
});

test('publishers that DRM does not cover are named, unless they are closed', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'kiln-drm-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const infoFile = join(folder, 'drm.xml');
  const id = 'ab'.repeat(16);
  writeFileSync(
    infoFile,
    `<DRMInfo><DRM><CencProtectScheme>cbcs</CencProtectScheme><KeyId>${id}</KeyId><Key>${id}</Key><Iv>${id}</Iv>` +
      '<FairPlayKeyUrl>skd://k</FairPlayKeyUrl></DRM></DRMInfo>',
  );
  const drm = (more: string): string =>
    `<LLHLS><DRM><Enable>true</Enable><InfoFile>${infoFile}</InfoFile>${more}</DRM></LLHLS>`;
  const warned = (publishers: string) =>
    warningsOf(t, { apps: application(`<Publishers>${publishers}</Publishers>`, 'a') });
  t.deepEqual(await warned(`${drm('')}<WebRTC/><HLS/><FILE/>`), [
    'DRM of the application a does not cover WebRTC, HLS: RefuseClear closes them',
  ]);
  t.deepEqual(await warned(drm('')), []);
  t.deepEqual(await warned(`${drm('<RefuseClear>true</RefuseClear>')}<WebRTC/><HLS/>`), []);
});

test('former elements of DRM warn with what to write instead', async (t) => {
  const names = ['DRMProvider', 'DRMSystem', 'KMSUrl', 'KMSToken', 'ContentId'];
  const elements = names.map((name) => `<${name}>secret</${name}>`).join('');
  const drm = `<LLHLS><DRM><Enable>false</Enable>${elements}<Other/></DRM></LLHLS>`;
  const { warnings } = await load(t, serverXml({ apps: application(`<Publishers>${drm}</Publishers>`) }));
  for (const name of names)
    t.is(
      warnings.filter(
        (line) => line.includes(`unknown element ${name} `) && / has no effect: write .*KeyServer/.test(line),
      ).length,
      1,
    );
  t.is(warnings.filter((line) => / Other at line \d+ has no effect$/.test(line)).length, 1);
  t.false(warnings.join().includes('secret'));
});

const SERVER = '<Url>https://keys.example/cpix</Url>';
const WRONG: Readonly<Record<string, readonly [drm: string, message: RegExp]>> = {
  'neither a file nor a key server': ['', /DRM\/InfoFile: is missing, and so is KeyServer/],
  'both a file and a key server': [
    `<InfoFile>none.xml</InfoFile><KeyServer>${SERVER}</KeyServer>`,
    /DRM\/KeyServer: cannot be combined with InfoFile/,
  ],
  'a key server without TLS': ['<KeyServer><Url>http://keys.example/</Url></KeyServer>', /Url: .* is not an https URL/],
  'FairPlay with cenc': [
    `<KeyServer>${SERVER}<Systems>Widevine, fairplay</Systems><CencProtectScheme>cenc</CencProtectScheme></KeyServer>`,
    /KeyServer\[1\]\/Systems: has FairPlay, which needs cbcs/,
  ],
  'a key system that there is none of': [
    `<KeyServer>${SERVER}<Systems>Widevine,Marlin</Systems></KeyServer>`,
    /Systems: .* is not a list of Widevine, PlayReady, FairPlay/,
  ],
  'a user without a password': [`<KeyServer>${SERVER}<UserName>u</UserName></KeyServer>`, /UserName: needs Password/],
  'an access key without its secret': [
    `<KeyServer>${SERVER}<AccessKeyId>a</AccessKeyId></KeyServer>`,
    /AccessKeyId: needs SecretAccessKey/,
  ],
  'two kinds of credentials': [
    `<KeyServer>${SERVER}<UserName>u</UserName><Password>p</Password><AccessKeyId>a</AccessKeyId><SecretAccessKey>s</SecretAccessKey></KeyServer>`,
    /UserName: cannot be combined with AccessKeyId/,
  ],
  'a fingerprint that is none': [
    `<KeyServer>${SERVER}<CertificateFingerprint>AB:CD</CertificateFingerprint></KeyServer>`,
    /CertificateFingerprint: .* is not a SHA-256/,
  ],
};

for (const [what, [elements, expected]] of Object.entries(WRONG)) {
  test(`DRM with ${what} makes the configuration invalid`, async (t) => {
    const drm = `<LLHLS><DRM><Enable>true</Enable>${elements}</DRM></LLHLS>`;
    const { message } = (await t.throwsAsync(
      load(t, serverXml({ apps: application(`<Publishers>${drm}</Publishers>`) })),
    )) as Error;
    t.regex(message, expected);
  });
}

test('a DRM file that is wrong makes the configuration invalid', async (t) => {
  const drm = '<LLHLS><DRM><Enable>true</Enable><InfoFile>none.xml</InfoFile></DRM></LLHLS>';
  const { message } = (await t.throwsAsync(
    load(t, serverXml({ apps: application(`<Publishers>${drm}</Publishers>`) })),
  )) as Error;
  t.regex(message, /LLHLS\/DRM\/InfoFile: .*none\.xml: ENOENT/);
});

test('OriginMode says what access control does not cover', async (t) => {
  const warningsFor = async (enables: string, llhls: string) => {
    const policy =
      '<SignedPolicy><PolicyQueryKeyName>p</PolicyQueryKeyName><SignatureQueryKeyName>s</SignatureQueryKeyName>' +
      `<SecretKey>k</SecretKey><Enables><Publishers>${enables}</Publishers></Enables></SignedPolicy>`;
    const apps = application(`<Publishers><LLHLS>${llhls}</LLHLS></Publishers>`);
    const { warnings } = await load(t, serverXml({ vhosts: vhost(`${policy}<Applications>${apps}</Applications>`) }));
    return warnings.filter((line) => line.startsWith('OriginMode'));
  };
  const origin = '<OriginMode>true</OriginMode>';
  t.deepEqual(await warningsFor('WebRTC,LLHLS', origin), [
    'OriginMode limits access control to master playlists: everybody can load the chunklists and the media that they name',
  ]);
  t.deepEqual(await warningsFor('WebRTC,hlsv3', origin), []);
  t.deepEqual(await warningsFor('llhls', ''), []);
});

test('options that the transcoder supports are not pending', async (t) => {
  const encodes =
    '<Encodes><Video><Codec>h264</Codec><Bitrate>1M</Bitrate></Video><Audio><Codec>opus</Codec><Bitrate>128K</Bitrate></Audio>' +
    '<Image><Codec>png</Codec></Image></Encodes>';
  const template = '<Playlist><FileName>a</FileName><RenditionTemplate><Name>r</Name></RenditionTemplate></Playlist>';
  const webhook =
    '<TranscodeWebhook><Enable>true</Enable><ControlServerUrl>http://127.0.0.1/</ControlServerUrl></TranscodeWebhook>';
  const overlays =
    '<OutputProfiles><MediaOptions><Overlays><Enable>true</Enable></Overlays></MediaOptions></OutputProfiles>';
  const thumbnail = '<Publishers><Thumbnail/></Publishers>';
  const stt = '<STT><Rendition><Engine>whisper</Engine><OutputSubtitleLabel>en</OutputSubtitleLabel></Rendition></STT>';
  t.deepEqual(
    await warningsOf(t, {
      bind: '<Publishers><Thumbnail><Port>3333</Port></Thumbnail></Publishers>',
      apps: profile(template, encodes) + application(webhook + overlays + thumbnail, 'b'),
    }),
    [],
  );
  const speech = `<OutputProfiles><MediaOptions>${stt}</MediaOptions></OutputProfiles>`;
  t.deepEqual(await warningsOf(t, { apps: application(speech) }), ['STT']);
});

test('Subtitles in their former place count, with a warning, unless the application has its own', async (t) => {
  const subtitles = (label: string) =>
    `<Subtitles><Enable>true</Enable><Rendition><Label>${label}</Label></Rendition></Subtitles>`;
  const former = `<OutputProfiles><MediaOptions>${subtitles('Korean')}</MediaOptions></OutputProfiles>`;
  const labels = async (inner: string) => {
    const { config, warnings } = await load(t, serverXml({ apps: application(inner) }));
    const [app] = config.virtualHosts[0]?.applications ?? [];
    return [app?.subtitles?.rendition.map(({ label }) => label), warnings.length];
  };
  t.deepEqual(await labels(former), [['Korean'], 1]);
  t.deepEqual(await labels(subtitles('English') + former), [['English'], 1]);
  t.deepEqual(await labels(subtitles('English')), [['English'], 0]);
});

test('an output playlist with the name of recordings warns where they are played', async (t) => {
  const playlist = (name: string) => `<Playlist><FileName>${name}</FileName></Playlist>`;
  const warned = async (name: string, publishers: string) =>
    await warningsOf(t, { apps: profile(playlist(name)).replace('</Application>', `${publishers}</Application>`) });
  const playback = '<Publishers><Playback/></Publishers>';
  t.deepEqual(await warned('recorded', playback), ['Playback of recordings as HLS']);
  t.deepEqual(await warned('recorded', ''), []);
  t.deepEqual(await warned('main', playback), []);
});

test('options that are switched off cause no warning', async (t) => {
  const webhook = '<TranscodeWebhook><Enable>false</Enable></TranscodeWebhook>';
  const body = `${webhook}<Publishers><LLHLS><DVR/><DRM/></LLHLS></Publishers>`;
  t.deepEqual(await warningsOf(t, { apps: application(body), server: '<Modules><P2P/></Modules>' }), []);
});

test('options of modules that are there, which they do not heed yet', async (t) => {
  const relay = '<IceCandidates><TcpRelay>*:3478</TcpRelay></IceCandidates>';
  const publishers = '<Publishers><WebRTC><JitterBuffer>true</JitterBuffer><Ulpfec>true</Ulpfec></WebRTC></Publishers>';
  t.deepEqual(
    await warningsOf(t, {
      bind: `<Publishers><WebRTC><Signalling><Port>3333</Port></Signalling>${relay}</WebRTC></Publishers>`,
      apps: application(publishers),
      server: '<Modules><ETag><Enable>true</Enable></ETag></Modules>',
    }),
    ['Ulpfec', 'TcpRelay is not offered to clients: it needs a TcpRelaySecret that the relay shares'],
  );
});

test('data tracks warn where they are asked for', async (t) => {
  const data = '<Encodes><Data><Name>d</Name></Data></Encodes>';
  t.deepEqual(await warningsOf(t, { apps: profile('', data) }), ['Encodes/Data']);
});

test('options that only tune threads and memory of OvenMediaEngine cause one line together', async (t) => {
  const { warnings, notes } = await load(
    t,
    serverXml({
      bind: '<Providers><RTMP><Port>1935</Port><WorkerCount>2</WorkerCount><ThreadPerSocket>true</ThreadPerSocket></RTMP></Providers>',
      server: '<Modules><Jemalloc/><TaskPool><ThreadCount>8</ThreadCount></TaskPool></Modules>',
      apps: application('<Publishers><AppWorkerCount>2</AppWorkerCount><LLHLS/></Publishers>'),
    }),
  );
  t.deepEqual(warnings, []);
  t.deepEqual(notes, [
    'elements without effect in Kiln: Bind/Providers/RTMP/WorkerCount, Bind/Providers/RTMP/ThreadPerSocket, Modules/Jemalloc, ' +
      'Modules/TaskPool, VirtualHosts/VirtualHost[1]/Applications/Application[1]/Publishers/AppWorkerCount',
  ]);
  t.deepEqual((await load(t, serverXml())).notes, []);
});

test('TimestampMode of each provider is supported without a warning', async (t) => {
  for (const way of ['RTMP', 'SRT', 'MPEGTS', 'WebRTC', 'RTSPPull', 'OVT']) {
    const apps = application(`<Providers><${way}><TimestampMode>Original</TimestampMode></${way}></Providers>`);
    t.deepEqual(await warningsOf(t, { apps }), [], way);
  }
});

test('an option for all publishers together that none of them follows causes a warning', async (t) => {
  const all = (element: string) =>
    application(`<Publishers><AppWorkerCount>2</AppWorkerCount>${element}<LLHLS/></Publishers>`);
  t.deepEqual(await warningsOf(t, { apps: all('') }), []);
  t.deepEqual(await warningsOf(t, { apps: all('<DelayBufferTimeMs>100</DelayBufferTimeMs>') }), [
    'DelayBufferTimeMs of all Publishers together',
  ]);
  t.deepEqual(await warningsOf(t, { apps: all('<MaxConnection>5</MaxConnection>') }), []);
});

test('a Schedule without a folder for files plays streams only', async (t) => {
  const warningsFor = async (schedule: string) => {
    const apps = application(`<Providers><Schedule>${schedule}</Schedule><Multiplex/></Providers>`);
    const { warnings } = await load(t, serverXml({ apps }));
    return warnings;
  };
  t.deepEqual(await warningsFor(''), [
    'Schedule without MediaRootDir plays streams only: files of channels are below that folder',
  ]);
  t.deepEqual(await warningsFor('<MediaRootDir>media</MediaRootDir>'), []);
});
