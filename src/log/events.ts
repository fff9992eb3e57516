/**
 * Ids of main events, in the field `event` of the log. They are stable, for alarms and searches, while the texts may change.
 * The values say when each is logged.
 */
export const EVENTS = {
  'server.started': 'every port listens',
  'server.draining': 'no new streams are accepted; running streams may continue for a while',
  'server.undrained': 'new streams are accepted again',
  'server.stopping': 'streams and sessions are being ended',
  'stream.published': 'an input stream knows its tracks: from a publisher, or pulled',
  'stream.ended': 'an input stream has ended, with its duration and the reason',
  'standby.began': 'the publisher of a stream is away, and a slate is shown',
  'standby.ended': 'the publisher of a stream is back, and is shown again',
  'standby.failed': 'a slate cannot be encoded or shown: the stream ends with its publisher',
  'stream.relayed': 'a stream of another node is relayed to viewers of this one',
  'relay.ended': 'a stream of another node is no longer relayed',
  'publisher.held':
    "the node that has the name of a publisher's stream does not answer: the publisher waits for some seconds",
  'viewer.joined': 'a viewer was admitted to a stream (debug)',
  'viewer.left': 'a viewer of a stream has gone (debug)',
  'client.refused': 'a publisher or viewer was refused, with the reason',
  'pull.failed': 'a stream could not be pulled',
  'push.started': 'a stream is being pushed to another server',
  'push.failed': 'a stream cannot be pushed, or not any longer; another connection will be tried',
  'task.started': 'this node runs a task',
  'record.finished': 'a file of a recording is finished',
  'record.deleted':
    'a finished file of a recording was deleted: by the management API, or for its age or want of space',
  'record.kept': 'a finished file of a recording is due, and could not be deleted',
  'record.space-short': 'finished recordings take almost MaxTotalSize, or more and may not be deleted',
  'record.uploaded': 'a file of a recording is in the bucket that it has to go to',
  'delivery.failed': 'finished recordings cannot be announced or uploaded at present; they wait',
  'delivery.resumed': 'finished recordings are announced or uploaded again',
  'delivery.given-up': 'a finished recording is not announced or uploaded, for good',
  'record.failed': 'a recording has failed for good',
  'dump.started': 'the HLS files of an output stream are being written to a folder',
  'dump.finished': 'an HLS dump is complete',
  'rewind.short': 'the disk has less than MinFreeSpace for players that rewind: older segments leave early',
  'rewind.long': 'a playlist of type EVENT is longer than MaxDuration',
  'disk.slow': 'a call for a disk of media does not return: what cannot be written is left out, and live streams go on',
  'disk.back': 'calls for such a disk return again',
  'dump.failed': 'an HLS dump has failed, or cannot start',
  'task.failed': 'a task has failed and is tried again',
  'api.changed': 'a call of the management API has changed something (debug: has sent events with a stream)',
  'audit.failed': 'the audit log cannot be written, or something else writes to it',
  'audit.resumed': 'the audit log is written again',
  'audit.lost': 'lines of the audit log could not be written before the server stopped',
  'audit.unproved': 'the last line of the audit log is not sealed with its key: that was changed, or lines were',
  'cluster.distrusted': 'something is refused that is not proved to come from a node of the cluster',
  'node.connected': 'this node is connected to the store of its cluster',
  'node.joined': 'another node has joined the cluster',
  'node.left': 'another node has left the cluster, or is lost',
  'node.buried':
    'the process of a node has died, and its streams and tasks are free; or the other nodes declared this node dead',
  'node.full': 'this node has reached a limit of Cluster/Node/Limits, and others get what is placed on nodes',
  'node.room': 'this node is no longer full',
  'store.evicts': 'Redis drops keys when its memory is full',
  'store.lost': 'the store of the cluster cannot be reached',
  'store.writesAlone': 'Redis acknowledges writes that no replica has',
  'store.back': 'the store of the cluster can be reached again',
  'clock.compared': 'the clock of this node begins or ceases to differ from that of Redis',
  'webhook.unreachable': 'a control server does not answer, and clients that it has to allow are refused',
  'webhook.reachable': 'a control server answers again',
  'worker.started': 'a media worker of WebRTC runs',
  'worker.died': 'a media worker of WebRTC has died; another one is started',
  'encoder.died': 'an encoder process has died and will be started again',
  'alert.raised':
    'what OvenMediaEngine reports as an alert: an encoder that died, an output stream that cannot be made, an input stream that ' +
    'breaks a rule, queues of a stream that are congested; a gap, an overlap or an unreadable file in the next 24 hours of a ' +
    'scheduled channel',
  'alert.resolved':
    'an input stream keeps all rules of alerts again, or none of the queues of a stream is congested any more, or a stream ' +
    'for which an alert was raised has ended',
  'alert.undelivered': 'the server of Alert/Url cannot be reached, or rejects alerts',
  'alert.lost':
    'alerts are not sent any more, with their number: too many waited, the server refused them, or the node has ended',
  'alert.delivered': 'alerts can be sent again',
} as const satisfies Readonly<Record<string, string>>;

export type EventId = keyof typeof EVENTS;
