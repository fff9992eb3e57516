import type { ApplicationConfig, OutputProfileConfig, ServerConfig, VirtualHostConfig } from './model.ts';

type Anywhere = (config: ServerConfig) => unknown;

const onVhost = (test: (vhost: VirtualHostConfig) => unknown): Anywhere =>
  ({ virtualHosts }) => virtualHosts.some(test);

const onApplication = (test: (application: ApplicationConfig) => unknown): Anywhere =>
  onVhost(({ applications }) => applications.some(test));

const onProfile = (test: (profile: OutputProfileConfig) => unknown): Anywhere =>
  onApplication(({ outputProfiles }) => outputProfiles.outputProfile.some(test));

const provider = (name: keyof ServerConfig['bind']['providers']): Anywhere =>
  (config) => config.bind.providers[name] ?? onApplication(({ providers }) => providers[name])(config);

const publisher = (name: 'ovt' | 'hls' | 'thumbnail' | 'srt'): Anywhere =>
  (config) => config.bind.publishers[name] ?? onApplication(({ publishers }) => publishers[name])(config);

const hlsOption = (test: (hls: NonNullable<ApplicationConfig['publishers']['hls']>) => unknown): Anywhere =>
  onApplication(({ publishers: { llhls, hls } }) => (llhls && test(llhls)) || (hls && test(hls)));

const NO_EFFECT = 'is not available: its configuration has no effect';
const NO_ENCODER = 'is not available: an encode without Bypass puts out nothing unless its BypassIfMatch holds';
const CLOSED = 'is not available: the providers and publishers that it enables refuse every client';

/** What can be configured but is not there: name, where it is looked for, and what follows. */
const MODULES: readonly (readonly [name: string, configured: Anywhere, consequence: string])[] = [
  ['SignedPolicy', onVhost(({ signedPolicy }) => signedPolicy), CLOSED],
  ['AdmissionWebhooks', onVhost(({ admissionWebhooks }) => admissionWebhooks), CLOSED],
  ['SRT provider', provider('srt'), NO_EFFECT],
  ['MPEGTS provider', provider('mpegts'), NO_EFFECT],
  ['RTSP provider', provider('rtsp'), NO_EFFECT],
  ['WebRTC provider', provider('webrtc'), NO_EFFECT],
  ['RTSPPull provider', onApplication(({ providers }) => providers.rtspPull), NO_EFFECT],
  ['OVT provider', onApplication(({ providers }) => providers.ovt), NO_EFFECT],
  ['Schedule provider', onApplication(({ providers }) => providers.schedule), NO_EFFECT],
  ['Multiplex provider', onApplication(({ providers }) => providers.multiplex), NO_EFFECT],
  ['FILE provider', onApplication(({ providers }) => providers.file), NO_EFFECT],
  ['OVT publisher', publisher('ovt'), NO_EFFECT],
  ['HLS publisher', publisher('hls'), NO_EFFECT],
  ['Thumbnail publisher', publisher('thumbnail'), NO_EFFECT],
  ['SRT publisher', publisher('srt'), NO_EFFECT],
  ['FILE publisher', onApplication(({ publishers }) => publishers.file), NO_EFFECT],
  ['Push publisher', onApplication(({ publishers }) => publishers.push), NO_EFFECT],
  ['Origins', onVhost(({ origins }) => origins), NO_EFFECT],
  ['OriginMapStore', onVhost(({ originMapStore }) => originMapStore), NO_EFFECT],
  ['TranscodeWebhook', onApplication(({ transcodeWebhook }) => transcodeWebhook?.enable), NO_EFFECT],
  ['EventGenerator', onApplication(({ eventGenerator, providers }) =>
    eventGenerator?.enable || providers.rtmp?.eventGenerator), NO_EFFECT],
  ['PassthroughOutputProfile', onApplication(({ providers }) => providers.rtmp?.passthroughOutputProfile), NO_EFFECT],
  ['DelayBufferTimeMs', onApplication(({ publishers: { llhls, webrtc } }) =>
    llhls?.delayBufferTimeMs || webrtc?.delayBufferTimeMs), NO_EFFECT],
  ['JitterBuffer', onApplication(({ publishers }) => publishers.webrtc?.jitterBuffer), NO_EFFECT],
  ['Ulpfec', onApplication(({ publishers }) => publishers.webrtc?.ulpfec), NO_EFFECT],
  ['TcpRelay', ({ bind }) => bind.publishers.webrtc?.iceCandidates.tcpRelay.length, NO_EFFECT],
  ['Subtitles', onApplication(({ subtitles }) => subtitles?.enable), NO_EFFECT],
  ['STT', onApplication(({ outputProfiles }) => outputProfiles.mediaOptions?.stt?.enable), NO_EFFECT],
  ['Overlays', onApplication(({ outputProfiles }) => outputProfiles.mediaOptions?.overlays?.enable), NO_EFFECT],
  ['DVR', hlsOption(({ dvr }) => dvr?.enable), NO_EFFECT],
  ['DRM', onApplication(({ publishers }) => publishers.llhls?.drm?.enable), NO_EFFECT],
  ['Dumps', hlsOption(({ dumps }) => dumps.length > 0), NO_EFFECT],
  ['RenditionTemplate', onProfile(({ playlists }) =>
    playlists.some((playlist) => playlist.rendition_templates.length > 0)), NO_EFFECT],
  ['Encoding', onProfile(needsEncoder), NO_ENCODER],
  ['PrivacyProtection', ({ privacyProtection }) => privacyProtection, NO_EFFECT],
  ['ETag', ({ modules }) => modules.etag.enable, NO_EFFECT],
  ['P2P', ({ modules }) => modules.p2p.enable, NO_EFFECT],
  ['Recovery', ({ modules }) => modules.recovery.enable, NO_EFFECT],
  ['Whisper', ({ modules }) => modules.whisper, NO_EFFECT],
  ['Alert', ({ alert }) => alert, NO_EFFECT],
  ['Cluster', ({ cluster }) => cluster, 'is not available: this node runs alone'],
];

function needsEncoder({ encodes: { videos, audios, images } }: OutputProfileConfig): boolean {
  if (images.length > 0) return true;
  return [...videos, ...audios].some(({ bypass, bypassIfMatch }) => !bypass && bypassIfMatch === undefined);
}

/** A line for each module that is configured and not there. */
export function pendingModules(config: ServerConfig): string[] {
  return MODULES.filter(([, configured]) => Boolean(configured(config))).map(([name, , why]) => `${name} ${why}`);
}
