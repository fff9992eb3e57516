/**
 * What the log calls its main events, in the field `event`: stable, so that alarms and searches can go by them, where the
 * texts may change. The values say when each is logged.
 */
export const EVENTS = {
  'server.started': 'every port listens',
  'server.draining': 'no new streams are accepted; running streams may continue for a while',
  'server.undrained': 'new streams are accepted again',
  'server.stopping': 'streams and sessions are being ended',
  'stream.published': 'an input stream knows its tracks: from a publisher, or pulled',
  'stream.ended': 'an input stream has ended, with its duration and the reason',
  'stream.relayed': 'a stream of another node is relayed to viewers of this one',
  'relay.ended': 'a stream of another node is no longer relayed',
  'viewer.joined': 'a viewer was admitted to a stream (debug)',
  'viewer.left': 'a viewer of a stream has gone (debug)',
  'client.refused': 'a publisher or viewer was refused, with the reason',
  'pull.failed': 'a stream could not be pulled',
  'task.started': 'this node runs a task',
  'record.finished': 'a file of a recording is finished',
  'record.failed': 'a recording has failed for good',
  'task.failed': 'a task has failed and is tried again',
  'api.changed': 'a call of the management API has changed something',
  'node.connected': 'this node is connected to the store of its cluster',
  'node.joined': 'another node is in the cluster',
  'node.left': 'another node has left the cluster, or is lost',
  'store.lost': 'the store of the cluster cannot be reached',
  'store.back': 'the store of the cluster can be reached again',
  'clock.compared': 'the clock of this node begins or ceases to differ from that of Redis',
  'webhook.unreachable': 'a control server does not answer, and clients that it has to allow are refused',
  'webhook.reachable': 'a control server answers again',
  'worker.started': 'a media worker of WebRTC runs',
  'worker.died': 'a media worker of WebRTC has died; another one is started',
  'encoder.died': 'an encoder process has died and will be started again',
  'alert.raised': 'what OvenMediaEngine reports as an alert, such as an encoder that died or cannot be started',
} as const satisfies Readonly<Record<string, string>>;

export type EventId = keyof typeof EVENTS;
