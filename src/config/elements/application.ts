import Type, { type Static } from 'typebox';
import { choice, flag, ignored, integer, optional, repeated, text, type Fail } from '../blocks.ts';
import { OutputProfiles } from './output-profile.ts';
import { Providers } from './providers.ts';
import { Publishers } from './publishers.ts';
import { unique } from '../rules.ts';
import { httpUrl, networkText, objectName, userName } from './shared.ts';
import { Captions, Subtitles } from './subtitles.ts';

const TranscodeWebhook = optional(
  {
    enable: flag(false),
    controlServerUrl: Type.Optional(httpUrl()),
    secretKey: Type.Optional(text()),
    timeout: integer(1500, { min: 1, max: 600_000 }),
    useLocalProfilesOnConnectionFailure: flag(true),
    useLocalProfilesOnServerDisallow: flag(false),
    useLocalProfilesOnErrorResponse: flag(false),
  },
  {
    rule: ({ enable, controlServerUrl }: { enable: boolean; controlServerUrl?: string }, fail: Fail) => {
      if (enable && controlServerUrl === undefined) fail(['controlServerUrl'], 'is missing');
    },
  },
);

/** A slate between publishers, instead of the end of the stream. */
export const Standby = Type.Object({
  enable: flag(false),
  /** Absent: a generated slate with the text. */
  file: Type.Optional(text({ xml: 'File' })),
  text: text({ default: 'The stream will be back soon' }),
  /** Milliseconds without a packet after which a publisher counts as away; 0: only when it leaves. */
  silenceTimeoutMs: integer(800),
  /** Seconds; 0: no limit. */
  maxDuration: integer(0, { max: 2_000_000 }),
});

/** Limits per client address and node; 0: no limit. */
const Limits = optional({
  allow: Type.Optional(networkText()),
  deny: Type.Optional(networkText()),
  connectionsPerMinute: integer(0),
  publishesPerMinute: integer(0),
});

/** Names and passwords for RTSP. Without the element no password is asked for. */
const Users = optional({
  user: repeated(Type.Object({ name: userName(), password: text() }), undefined, {
    rule: (users: { name: string }[], fail: Fail) => unique(users, 'name', [], fail),
  }),
});

/** Streams under one name space and one configuration; `*` is the template of applications that are created on demand. */
export const Application = Type.Object(
  {
    name: objectName(),
    /** OvenMediaEngine also has `vod`. */
    type: { ...choice(['live']), is: 'supported: only live is' },
    transcodeWebhook: TranscodeWebhook,
    eventGenerator: optional({ enable: flag(false), path: text({ default: '' }) }),
    subtitles: Subtitles,
    captions: Captions,
    limits: Limits,
    users: Users,
    standby: Type.Optional(Standby),
    providers: Providers,
    publishers: Publishers,
    outputProfiles: OutputProfiles,
    decodes: ignored(),
    persistentStreams: ignored(),
    hwaccels: ignored(),
  },
  {
    complete: (application: WithSubtitles) => {
      application.subtitles ??= application.outputProfiles.mediaOptions?.subtitles;
    },
    rule: ({ subtitles, captions }: WithSubtitles, fail: Fail) => {
      const { enable = false, rendition = [] } = subtitles ?? {};
      for (const [index, { label }] of captions?.toWebVtt.entries() ?? []) {
        const isLabel = enable && rendition.some((one) => one.label === label);
        if (!isLabel) fail(['captions', 'toWebVtt', index, 'label'], `"${label}" is not a Label of Subtitles`);
      }
    },
  },
);

interface WithSubtitles {
  subtitles?: Static<typeof Subtitles> | undefined;
  readonly captions?: Static<typeof Captions> | undefined;
  readonly outputProfiles: { readonly mediaOptions?: { readonly subtitles?: Static<typeof Subtitles> } };
}
