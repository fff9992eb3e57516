/**
 * Errors for clients, by name: HTTP status and message text.
 * The management API wraps the text as `[HTTP] <text> (<status>)` (docs/compatibility.md#rest-answers).
 */
const table = {
  vhostNotFound: [404, (vhost: string) => `Could not find the virtual host: [${vhost}]`],
  applicationNotFound: [404, (vhost: string, app: string) => `Could not find the application: [${vhost}/${app}]`],
  streamNotFound: [404, (internalName: string) => `Could not find the stream: [${internalName}]`],
  playlistNotFound: [404, (path: string) => `Could not find the playlist: [${path}]`],
  profileNotFound: [404, (path: string) => `Could not find the output profile: [${path}]`],
  controllerNotFound: [404, () => 'Controller not found'],
  authorizationMissing: [401, () => 'Authorization header is required to call API'],
  authorizationMalformed: [401, () => 'Invalid authorization header'],
  credentialTypeUnknown: [401, (scheme: string) => `Not supported credential type: ${scheme}`],
  credentialMalformed: [401, () => 'Invalid credential format'],
  credentialWrong: [401, () => 'Invalid credential'],
  readOnlyLinkExpired: [401, () => 'The read-only link has expired'],
  readOnlyForbidden: [403, () => 'A read-only link does not allow this'],
  storageFailed: [500, () => 'Internal Server Error'],
  clusterUnavailable: [503, () => 'Nothing can be changed now: the store of the cluster is not available'],
  changeUnknown: [504, () => 'The store of the cluster did not answer: the change may or may not have been made'],
  statisticsUnavailable: [
    503,
    () => 'What this node counts cannot be reported now: the store of the cluster is not available',
  ],
  ownerUnreachable: [503, () => 'The node that has the stream cannot be reached: try again'],
  ownerSilent: [504, () => 'The node that has the stream did not answer: the call may or may not have had its effect'],
  callUnknown: [503, () => 'The node that has the stream runs another version, which does not know this call'],
  callMalformed: [400, (call: string) => `The body of the call ${call} does not match its schema`],
  nodeNotFound: [404, (node: string) => `Could not find the node: [${node}]`],
  nodeDraining: [503, () => 'This node is draining and accepts no new streams'],
  vhostReadOnly: [403, (vhost: string) => `The VirtualHost is read-only: [${vhost}]`],
  bodyNotArray: [400, () => 'Request body must be an array'],
  batchTooLong: [400, (limit: number) => `Request body must have at most ${limit} items`],
  bodyNotObject: [400, () => 'Request body must be an object'],
  valueMissing: [400, (detail: string) => detail],
  configInvalid: [400, (detail: string) => detail],
  unchangeable: [400, (key: string) => `Cannot change [${key}] using this API`],
  templateName: [400, () => 'An application cannot be named [*]'],
  profileExists: [409, (name: string) => `The output profile "${name}" already exists`],
  tooManyApplications: [
    503,
    (limit: number) => `Too many applications created on request: at most ${limit} are allowed`,
  ],
  pullInvalid: [400, (detail: string) => detail],
  pullFailed: [502, (url: string, reason: string) => `Could not pull the stream : ${url}: ${reason}`],
  channelInvalid: [400, (detail: string) => detail],
  channelExists: [409, (name: string) => `Stream '${name}' already exists`],
  channelNotFound: [404, () => 'Could not find the application or stream'],
  channelsForbidden: [403, () => 'Forbidden'],
  revocationInvalid: [400, (detail: string) => detail],
  revocationNotFound: [404, (id: string) => `Could not find the revocation: [${id}]`],
  tooManyRevocations: [409, (limit: number) => `Too many revocations: at most ${limit} are kept`],
  standbyExists: [409, (stream: string) => `The stream has a standby task already: [${stream}]`],
  standbyNotFound: [404, (stream: string) => `The stream has no standby: [${stream}]`],
  taskInvalid: [400, (detail: string) => detail],
  pushProtocolUnknown: [
    400,
    (protocol: string, vhost: string, app: string) => `Could not find protocol '${protocol}': [${vhost}/${app}]`,
  ],
  pushExists: [409, () => 'Duplicate ID'],
  pushNotFound: [404, (id: string, vhost: string, app: string) => `Could not find id '${id}': [${vhost}/${app}]`],
  publisherNotFound: [404, (vhost: string, app: string) => `Could not find publisher: [${vhost}/${app}]`],
  recordExists: [409, () => 'Duplicate ID already exists'],
  recordNotFound: [404, (id: string) => `There is no record information related to the ID [${id}]`],
  recordingNotFound: [404, (id: string) => `Could not find the recording: [${id}]`],
  recordingUnknown: [
    503,
    (id: string, nodes: string) => `Could not find the recording: [${id}]; these nodes did not answer: ${nodes}`,
  ],
  recordingNodeSilent: [
    504,
    (node: string) => `The node that has the recording did not answer: [${node}]; it may or may not have been deleted`,
  ],
  recordingBusy: [409, (id: string, state: string) => `The recording is still ${state}: [${id}]`],
  recordingChanged: [409, (id: string, reason: string) => `Nothing was deleted of [${id}]: ${reason}`],
  timeInvalid: [400, (text: string) => `There is no such time: ${text}`],
  outputNotFound: [404, (path: string) => `Could not find output stream: [${path}]`],
  drmNotFound: [404, (path: string) => `The stream has no DRM: [${path}]`],
  keyNotRotated: [409, (reason: string) => `The key was not rotated: ${reason}`],
  llhlsStreamNotFound: [404, (path: string) => `Could not find LLHLS stream: [${path}]`],
  dumpNotStarted: [500, (path: string, reason: string) => `Could not start dump: [${path}] (${reason})`],
  dumpNotFound: [404, (path: string) => `Could not stop dump: [${path}] (Could not find dump info)`],
  eventInvalid: [400, (detail: string) => detail],
  eventStreamNotFound: [404, (path: string) => `Could not find stream: [${path}]`],
  eventNotInjected: [500, (path: string) => `Internal Server Error - Could not inject event: [${path}]`],
  subtitlesInvalid: [400, (detail: string) => detail],
  subtitlesNotShown: [
    503,
    (path: string) => `The stream has no media yet, or too many subtitles that wait for their time: [${path}]`,
  ],
  tooManyWrongCredentials: [429, () => 'Too many wrong credentials'],
  hostForbidden: [403, (host: string) => `Host is not allowed: [${host}]`],
  vhostExists: [409, (vhost: string) => `The virtual host already exists: [${vhost}]`],
  applicationExists: [
    409,
    (vhost: string, app: string) => `Could not create the application: [${vhost}/${app}] already exists`,
  ],
  streamExists: [409, () => 'Stream already exists'],
  streamAlreadyThere: [409, () => 'Stream is already exist'],
  streamNameUnconfirmed: [503, () => 'The cluster cannot confirm now that the stream name is free'],
  streamEnded: [403, () => 'The stream was ended before it began'],
  providerDisabled: [403, (module: string, internalName: string) => `${module} is not enabled: [${internalName}]`],
  streamNameInvalid: [400, (name: string) => `Invalid stream name: [${name}]`],
  tooManyConnections: [503, (limit: number) => `Too many connections: at most ${limit} are allowed`],
  networkForbidden: [403, () => 'Clients of this network are not allowed'],
  tooOften: [429, (limit: number) => `Too many connections of this address: at most ${limit} a minute are allowed`],
  accessDenied: [401, () => 'Access denied'],
  clientGone: [499, () => 'The client has gone'],
  sdpMalformed: [400, (detail: string) => `Could not parse SDP: ${detail}`],
  streamNotLive: [409, (internalName: string) => `The stream is not live: [${internalName}]`],
  notAcceptable: [406, (detail: string) => `The offer is not acceptable: ${detail}`],
  nothingPlayable: [406, () => 'The offer and the stream have no codec in common'],
  broadcastingUnavailable: [
    404,
    (app: string) => `Enhanced Broadcasting is not configured for the application: [${app}]`,
  ],
  encoderRequestInvalid: [400, (fault: string) => `The request is not one of an encoder: ${fault}`],
  noRenditionFits: [
    409,
    () =>
      'No configured rendition fits the canvas and the bandwidth of the encoder: raise its limits or its resolution',
  ],
  codecsNotTaken: [406, (codecs: string) => `The player takes none of the codecs of the stream: ${codecs}`],
  sessionExists: [409, (id: string) => `The session already exists: [${id}]`],
  sessionRefused: [403, (id: string) => `The session was ended by the server and may not return: [${id}]`],
  preconditionFailed: [412, () => 'If-Match names another ICE session'],
  preconditionRequired: [428, () => 'If-Match is required'],
  iceRestartIncomplete: [400, () => 'An ICE restart needs both ice-ufrag and ice-pwd, and If-Match: *'],
  methodNotAllowed: [405, (method: string) => `${method} is not allowed here`],
  webrtcIngestUnavailable: [501, () => 'Publishing over WebRTC is not available on this port'],
  webrtcPlayUnavailable: [501, () => 'Playing over WebRTC is not available on this port'],
  mediaUnavailable: [503, () => 'No media worker is available for the session'],
  fileNotFound: [404, () => 'Could not find the file'],
  playlistSessionRefused: [401, () => 'The session in this URL is missing, invalid or has ended'],
  playlistSessionOver: [403, () => 'The time of the session in this URL is over'],
  playlistDirective: [400, (detail: string) => `Invalid delivery directive: ${detail}`],
  playlistStart: [400, (detail: string) => `Invalid start: ${detail}`],
  playbackQuery: [400, (detail: string) => `Invalid query: ${detail}`],
  playbackTooMany: [400, (limit: number) => `There are more than ${limit} recordings in this time: ask for less`],
  playbackTooWide: [400, () => 'There are too many recordings of this application in this time: ask for less'],
  playbackNothing: [404, () => 'There is no recording of this time'],
  playbackUnplayed: [
    404,
    (kinds: readonly string[]) => `Of this time there is only what is not played: ${kinds.join('; ')}`,
  ],
  playbackUnknown: [503, () => 'There is no recording of this time on the nodes that have answered: try again'],
  playbackBusy: [503, (limit: number) => `Too many requests for recordings: at most ${limit} at a time are answered`],
  playbackFailed: [500, (reason: string) => `The recording cannot be read: ${reason}`],
  playlistOverdue: [503, () => 'The requested part of the stream was not produced in time'],
  streamInterrupted: [503, () => 'The stream is interrupted'],
  tooManyWaiting: [503, () => 'Too many requests are waiting for this stream'],
  thumbnailStreamNotFound: [404, () => 'There is no stream or cannot pull a stream'],
  thumbnailNotStarted: [404, () => 'The stream has not started'],
  thumbnailMissing: [404, () => 'There is no thumbnail image'],
  thumbnailExtension: [404, () => 'Unsupported file extension'],
  sessionNotFound: [404, () => 'Could not find the session'],
  tooManyReports: [429, () => 'Too many reports of this session'],
  unsupportedMediaType: [415, (type: string) => `The body must be ${type}`],
  certificateReloadFailed: [500, () => 'Failed to reload certificate. Check server log for more information.'],
  apiTlsDisabled: [400, () => 'TLS is not enabled for the API Server'],
  apiCertificateFailed: [500, () => 'Failed to create a certificate for API Server'],
  ovtStreamNotFound: [404, (internalName: string) => `There is no such stream (${internalName})`],
  ovtTracksetNotFound: [404, (trackset: string) => `There is no such trackset (${trackset})`],
  relayedEnough: [503, () => 'The stream is sent to enough nodes, which pass it on'],
  ovtStreamNotStarted: [202, () => 'stream has not started'],
  ovtRequestIncomplete: [404, () => 'The request has no id, application or target, or an application that is unknown'],
  ovtRequestMalformed: [500, () => 'Server Internals Error'],
} as const satisfies Record<string, readonly [number, (...args: never[]) => string]>;

export type ErrorCode = keyof typeof table;

/** An error with an entry in the table. `code` is the entry's name, `status` its HTTP status. */
export class KilnError extends Error {
  readonly code: ErrorCode;
  readonly status: number;

  constructor(code: ErrorCode, status: number, message: string) {
    super(message);
    this.name = 'KilnError';
    this.code = code;
    this.status = status;
  }
}

/** Makes the error named `code` from the parts its text needs. */
export function kilnError<C extends ErrorCode>(code: C, ...args: Parameters<(typeof table)[C][1]>): KilnError {
  const [status, text] = table[code];
  return new KilnError(code, status, (text as (...parts: unknown[]) => string)(...args));
}
