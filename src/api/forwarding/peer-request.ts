import Type, { type Static } from 'typebox';
import { definePeerCall } from '../../peers/peer-call.ts';

/** A call of the management API that one node forwards to another, which accepts it without credentials. */
export const API_REQUEST = definePeerCall(
  'api/request',
  Type.Object({
    method: Type.String(),
    /** URL with its query. */
    url: Type.String(),
    /** Id of the request in the log. */
    requestId: Type.String(),
    /** Host that the client called. */
    host: Type.String(),
    /** User and address of the client. */
    user: Type.Optional(Type.String()),
    remote: Type.Optional(Type.String()),
    body: Type.Optional(Type.String()),
    /** Position of the configuration that the answering node must have, as the calling node knows it. */
    position: Type.Optional(Type.String()),
  }),
  Type.Object({
    status: Type.Integer({ minimum: 200, maximum: 599 }),
    type: Type.Optional(Type.String()),
    /** Whether the answer may lack changes of other nodes. */
    stale: Type.Boolean(),
    body: Type.String(),
  }),
);
export type ApiRequest = Static<typeof API_REQUEST.request>;
export type ApiAnswer = Static<typeof API_REQUEST.answer>;
