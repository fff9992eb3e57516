import Type from 'typebox';
import { choice, contained, flag, integer, optional, repeated, section, text, type Fail } from '../blocks.ts';
import { Application } from './application.ts';
import { enables, endpoint, hostNames, httpUrl, tls } from './shared.ts';

const SignedPolicy = optional({
  policyQueryKeyName: text(),
  signatureQueryKeyName: text(),
  secretKey: text(),
  enables: enables(),
});

const AdmissionWebhooks = optional({
  controlServerUrl: httpUrl(),
  secretKey: Type.Optional(text()),
  timeout: integer(3000, { min: 1 }),
  enables: enables(),
});

const Origin = Type.Object(
  {
    location: text(),
    pass: Type.Object({
      scheme: choice(['ovt', 'rtsp', 'rtspc']),
      urls: Type.Object({ url: repeated(text(), undefined, { rule: notEmpty }) }),
      forwardQueryParams: flag(true),
    }),
    persistent: flag(false),
    failback: flag(false),
    strictLocation: flag(false),
    /** Past the transcoder: by default for OVT only. */
    relay: Type.Optional(flag()),
    ignoreRtcpSRTimestamp: flag(false),
  },
  {
    complete: (origin: { relay?: boolean; pass: { scheme: string } }) => {
      origin.relay ??= origin.pass.scheme === 'ovt';
    },
  },
);

function notEmpty(list: readonly unknown[], fail: Fail): void {
  if (list.length === 0) fail([], 'is missing');
}

const Origins = optional({
  properties: section({
    noInputFailoverTimeout: integer(3000),
    unusedStreamDeletionTimeout: integer(60_000),
    streamFailbackTimeout: integer(3000),
    retryCount: integer(0),
  }),
  origin: repeated(Origin),
});

const OriginMapStore = optional({
  redisServer: Type.Object({ host: endpointText(), auth: Type.Optional(text()) }),
  originHostName: Type.Optional(text()),
});

/** `host:port`, kept as text for the management API shows it. */
function endpointText() {
  const schema = endpoint();
  const parse = (schema as unknown as { convert(given: unknown): unknown }).convert;
  return Type.Unsafe<string>({ ...schema, convert: (given: unknown) => (parse(given) === undefined ? undefined : given) });
}

export const VirtualHost = Type.Object({
  name: text(),
  distribution: text({ default: 'ovenmediaengine.com', shown: true }),
  host: Type.Object({ names: hostNames(), tls: tls() }),
  signedPolicy: SignedPolicy,
  admissionWebhooks: AdmissionWebhooks,
  origins: Origins,
  originMapStore: OriginMapStore,
  applications: contained(Application, 'Application'),
});
