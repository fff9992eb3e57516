import type { Static } from 'typebox';
import type { AlertRules } from './elements/alert.ts';
import type { Application, Standby } from './elements/application.ts';
import type { Bind } from './elements/bind.ts';
import type { OutputProfile } from './elements/output-profile.ts';
import type { Server } from './elements/server.ts';
import type { VirtualHost } from './elements/vhost.ts';

/**
 * The configuration as the rest of Kiln reads it: key names of the management API, defaults filled, deep-frozen. An element
 * that is off or not configured is undefined. Units of time as in docs/compatibility.md#configuration: milliseconds, and
 * seconds for HLS.
 */
type Frozen<T> = T extends object ? { readonly [K in keyof T]: Frozen<T[K]> } : T;

export type ServerConfig = Frozen<Static<typeof Server>>;
export type BindConfig = Frozen<Static<typeof Bind>>;
export type VirtualHostConfig = Frozen<Static<typeof VirtualHost>>;
export type ApplicationConfig = Frozen<Static<typeof Application>>;
export type OutputProfileConfig = Frozen<Static<typeof OutputProfile>>;

export type AlertConfig = NonNullable<ServerConfig['alert']>;
export type AlertRulesConfig = Frozen<Static<typeof AlertRules>>;
export type CrossDomainsConfig = NonNullable<ServerConfig['defaults']['crossDomains']>;
export type TlsConfig = NonNullable<VirtualHostConfig['host']['tls']>;
export type ClusterConfig = NonNullable<ServerConfig['cluster']>;
export type OutputProfilesConfig = ApplicationConfig['outputProfiles'];
export type StandbyConfig = Frozen<Static<typeof Standby>>;
export type SubtitlesConfig = NonNullable<ApplicationConfig['subtitles']>;
export type CaptionsConfig = NonNullable<ApplicationConfig['captions']>;
export type TranscodeWebhookConfig = NonNullable<ApplicationConfig['transcodeWebhook']>;
export type VideoEncodeConfig = OutputProfileConfig['encodes']['videos'][number];
export type AudioEncodeConfig = OutputProfileConfig['encodes']['audios'][number];
export type ImageEncodeConfig = OutputProfileConfig['encodes']['images'][number];

type Providers = ApplicationConfig['providers'];
type Publishers = ApplicationConfig['publishers'];
export type RtmpProviderConfig = NonNullable<Providers['rtmp']>;
export type EnhancedBroadcastingConfig = NonNullable<RtmpProviderConfig['enhancedBroadcasting']>;
export type MpegtsProviderConfig = NonNullable<Providers['mpegts']>;
export type WebrtcProviderConfig = NonNullable<Providers['webrtc']>;
export type SrtProviderConfig = NonNullable<Providers['srt']>;
/** Settings that HLS and LL-HLS share. */
export type HlsPublisherConfig = NonNullable<Publishers['hls']>;
export type LlhlsPublisherConfig = NonNullable<Publishers['llhls']>;
export type WebrtcPublisherConfig = NonNullable<Publishers['webrtc']>;
export type WebrtcBindConfig = NonNullable<BindConfig['publishers']['webrtc']>;
export type RtspBindConfig = NonNullable<BindConfig['publishers']['rtsp']>;
export type SrtBindConfig = NonNullable<BindConfig['publishers']['srt']>;
