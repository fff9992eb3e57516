import test from 'ava';
import { application, load, profile, serverXml, vhost } from './support.ts';

const warningsOf = async (t: Parameters<typeof load>[0], ...parts: Parameters<typeof serverXml>): Promise<string[]> => {
  const { warnings } = await load(t, serverXml(...parts));
  return warnings.map((line) => line.split(' is not available')[0] as string);
};

test('modules that are not there warn once each, wherever and however often they are configured', async (t) => {
  const providers = '<Providers><SRT/><WebRTC/><RTSPPull/></Providers>';
  const publishers = '<Publishers><HLS><DVR><Enable>true</Enable></DVR></HLS><OVT/><Push/></Publishers>';
  t.deepEqual(
    await warningsOf(t, {
      bind: '<Providers><SRT><Port>9999</Port></SRT></Providers><Publishers><HLS><Port>3333</Port></HLS></Publishers>',
      server: '<Alert><Url>http://127.0.0.1/</Url></Alert>',
      apps: application(providers + publishers, 'a') + application(providers + publishers, 'b'),
    }),
    [
      'SRT provider', 'WebRTC provider', 'RTSPPull provider', 'OVT publisher', 'HLS publisher', 'Push publisher', 'DVR',
      'Alert',
    ],
  );
});

test('access control says that it stays shut', async (t) => {
  const { warnings } = await load(t, serverXml({
    vhosts: vhost('<AdmissionWebhooks><ControlServerUrl>http://127.0.0.1/</ControlServerUrl></AdmissionWebhooks>'),
  }));
  t.deepEqual(warnings, [
    'AdmissionWebhooks is not available: the providers and publishers that it enables refuse every client',
  ]);
});

test('only encodes that need an encoder warn', async (t) => {
  const encodes = (body: string): string => `<Encodes>${body}</Encodes>`;
  const audio = '<Codec>opus</Codec><Bitrate>128000</Bitrate>';
  const matched = '<BypassIfMatch><Codec>eq</Codec></BypassIfMatch>';
  const bypassed = `<Video><Bypass>true</Bypass></Video><Audio>${audio}${matched}</Audio>`;
  t.deepEqual(await warningsOf(t, { apps: profile('', encodes(bypassed)) }), []);
  t.deepEqual(await warningsOf(t, { apps: profile('', encodes(`<Audio>${audio}</Audio>`)) }), ['Encoding']);
  t.deepEqual(await warningsOf(t, { apps: profile('', encodes('<Image><Codec>png</Codec></Image>')) }), ['Encoding']);
});

test('what is switched off does not warn', async (t) => {
  const webhook = '<TranscodeWebhook><Enable>false</Enable></TranscodeWebhook>';
  const body = `${webhook}<Publishers><LLHLS><DVR/><DRM/></LLHLS></Publishers>`;
  t.deepEqual(await warningsOf(t, { apps: application(body), server: '<Modules><P2P/></Modules>' }), []);
});

test('options of modules that are there, which they do not heed yet', async (t) => {
  const template = '<Playlist><FileName>a</FileName><RenditionTemplate><Name>r</Name></RenditionTemplate></Playlist>';
  const relay = '<IceCandidates><TcpRelay>*:3478</TcpRelay></IceCandidates>';
  const publishers = '<Publishers><WebRTC><JitterBuffer>true</JitterBuffer><Ulpfec>true</Ulpfec></WebRTC></Publishers>';
  const rtmp = '<Providers><RTMP><PassthroughOutputProfile>true</PassthroughOutputProfile></RTMP></Providers>';
  t.deepEqual(
    await warningsOf(t, {
      bind: `<Publishers><WebRTC><Signalling><Port>3333</Port></Signalling>${relay}</WebRTC></Publishers>`,
      apps: application(rtmp + publishers, 'a') + profile(template),
      server: '<Modules><ETag><Enable>true</Enable></ETag></Modules>',
    }),
    ['PassthroughOutputProfile', 'JitterBuffer', 'Ulpfec', 'TcpRelay', 'RenditionTemplate', 'ETag'],
  );
});

test('a delay that viewers would not get warns', async (t) => {
  const publishers = (ms: number) => `<Publishers><WebRTC><DelayBufferTimeMs>${ms}</DelayBufferTimeMs></WebRTC></Publishers>`;
  t.deepEqual(await warningsOf(t, { apps: application(publishers(100)) }), ['DelayBufferTimeMs']);
  t.deepEqual(await warningsOf(t, { apps: application(publishers(0)) }), []);
});
