//! The answer to an allowed CORS preflight, the same for all services.

use http::header::SERVER;
use http::{HeaderMap, HeaderValue, Response};

use crate::headers::X_MS_REQUEST_ID;
use crate::request::Request;
use crate::response_body::Body;

pub fn allowed(request: &Request<'_>, allowed: HeaderMap) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.headers_mut() = allowed;
    response.headers_mut().insert(SERVER, HeaderValue::from_static(request.service.server()));
    if let Ok(id) = HeaderValue::from_str(&request.id) {
        response.headers_mut().insert(X_MS_REQUEST_ID.clone(), id);
    }
    response
}
